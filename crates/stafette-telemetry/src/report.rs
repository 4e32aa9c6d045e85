//! A report of a run on one page that can be mailed and printed: no scripts, no external resources.

mod changes;
mod gather;
mod timeline;

use std::fmt::Write as _;

use stafette_core::clean::shown;
use stafette_core::{Millis, RunId, Time, Usage, Usd};
use stafette_engine::Stored;

use gather::{Gathered, Row};

pub use changes::Set;

/// Maximum number of handoffs in the drawing; all are listed.
const DRAWN: usize = 200;

const STYLE: &str = include_str!("report/page.css");

/// Returns the report of a run from its events. `diff` is the result if its agents had worktrees,
/// `sets` are the proposed changes; proposed changes need no other diff.
pub fn page(run: RunId, events: &[Stored], diff: Option<&str>, sets: &[Set]) -> String {
    let told = Gathered::of(run, events);
    let mut page = Page::default();
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // A mailed page must not be able to do anything, whatever agents wrote into it.
    page.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n",
    );
    page.raw("<title>").text(&told.request).raw("</title>\n<style>\n").raw(STYLE);
    page.raw("</style>\n</head>\n<body>\n<main>\n");
    head(&mut page, run, &told);
    page.raw("<h2>Timeline</h2>\n");
    timeline::draw(&mut page, &told, DRAWN);
    handoffs(&mut page, &told);
    costs(&mut page, &told);
    questions(&mut page, &told);
    dissent(&mut page, &told);
    changes::tell(&mut page, diff.unwrap_or_default(), sets);
    page.raw("</main>\n</body>\n</html>\n");
    page.html
}

fn head(page: &mut Page, run: RunId, told: &Gathered) {
    page.raw("<h1>").text(&told.request).raw("</h1>\n<dl>\n");
    let spent = format!("{}, {} tokens", told.spent.cost_and_unknown(), told.spent.count());
    let status = match told.why.is_empty() {
        true => told.status.clone(),
        false => format!("{}: {}", told.status, told.why),
    };
    let facts = [
        ("Run", run.to_string()),
        ("Workflow", told.workflow.clone()),
        ("Asked by", told.by.clone()),
        ("Outcome", status),
        ("Began", told.began.rfc3339()),
        ("Ended", told.ended.rfc3339()),
        ("Took", span(told.ended.since(told.began))),
        ("Spent", spent),
    ];
    for (name, value) in facts {
        page.raw("<dt>").text(name).raw("</dt><dd>").text(&value).raw("</dd>\n");
    }
    page.raw("</dl>\n");
}

fn handoffs(page: &mut Page, told: &Gathered) {
    page.raw("<h2>Handoffs</h2>\n");
    page.table(&["", "From", "To", "Why", "Outcome", "Took", "Said", "Answer"], |page| {
        for row in &told.rows {
            page.row(&[
                &row.id,
                &row.from,
                &row.to,
                &row.reason,
                &row.state,
                &span(row.ended.unwrap_or(told.ended).since(row.began)),
                &row.said,
                &row.answer,
            ]);
        }
    });
}

fn costs(page: &mut Page, told: &Gathered) {
    page.raw("<h2>Cost</h2>\n");
    page.table(&["Agent", "Turns", "Time", "Tokens", "Money"], |page| {
        for (agent, cost) in &told.costs {
            let unknown = cost.unknown;
            let used = Usage { unknown, ..Usage::exactly(cost.tokens, Usd(cost.micro_usd)) };
            page.row(&[
                agent,
                &cost.turns.to_string(),
                &span(Millis(cost.time_ms)),
                &used.count(),
                &used.cost(),
            ]);
        }
    });
}

fn questions(page: &mut Page, told: &Gathered) {
    let asked: Vec<&Row> = told.rows.iter().filter(|row| row.question.is_some()).collect();
    if asked.is_empty() {
        return;
    }
    page.raw("<h2>Questions and answers</h2>\n");
    page.table(&["", "Asked by", "Question", "Answer", "By"], |page| {
        for row in asked {
            let question = row.question.clone().unwrap_or_default();
            let (answer, by) = row.answered.clone().unwrap_or_default();
            page.row(&[&row.id, &row.from, &question, &answer, &by]);
        }
    });
}

fn dissent(page: &mut Page, told: &Gathered) {
    if told.dissent.is_empty() {
        return;
    }
    page.raw("<h2>Refusals and trouble</h2>\n");
    page.table(&["When", "What", "About", "Why"], |page| {
        for (at, what, about, why) in &told.dissent {
            page.row(&[&at.rfc3339(), what, about, why]);
        }
    });
}

/// Formats a duration for people.
fn span(time: Millis) -> String {
    match time.0 {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms if ms < 60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        ms if ms < 3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        ms => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// HTML under construction. Text of others is added with [`text`](Page::text) only.
#[derive(Default)]
struct Page {
    html: String,
}

impl Page {
    fn raw(&mut self, html: &str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars().filter_map(shown) {
            match c {
                '&' => self.html.push_str("&amp;"),
                '<' => self.html.push_str("&lt;"),
                '>' => self.html.push_str("&gt;"),
                '"' => self.html.push_str("&quot;"),
                '\'' => self.html.push_str("&#39;"),
                c => self.html.push(c),
            }
        }
        self
    }

    fn table(&mut self, head: &[&str], rows: impl FnOnce(&mut Page)) {
        self.raw("<table>\n<thead><tr>");
        for word in head {
            self.raw("<th>").text(word).raw("</th>");
        }
        self.raw("</tr></thead>\n<tbody>\n");
        rows(self);
        self.raw("</tbody>\n</table>\n");
    }

    fn row(&mut self, cells: &[&str]) {
        self.raw("<tr>");
        for cell in cells {
            self.raw("<td>").text(cell).raw("</td>");
        }
        self.raw("</tr>\n");
    }

    fn number(&mut self, name: &str, value: f64) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.html, " {name}=\"{value:.1}\"");
        self
    }
}

/// Returns the position of a moment within the run, from 0 to 1.
fn share(told: &Gathered, at: Time) -> f64 {
    let whole = told.ended.since(told.began).0.max(1) as f64;
    (at.since(told.began).0 as f64 / whole).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use stafette_core::Reason;

    use super::*;
    use crate::story::Story;

    #[test]
    fn b_17_a_run_is_told_on_one_page_that_needs_nothing_else() {
        let story = Story::example();
        let html = page(story.run.id, &story.stored(), Some("+++ b/auth.sh\n+echo <b>\n"), &[]);
        for wanted in ["Add user auth", "planner", "rereview_request", "<svg", "succeeded", "Cost"]
        {
            assert!(html.contains(wanted), "{wanted}");
        }
        assert!(html.contains("echo &lt;b&gt;"), "the diff is text");
        for foreign in ["<script", "src=", "href=", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn what_agents_wrote_is_text() {
        let mut story = Story::relay("");
        story.pass("<script>alert(1)</script>", Reason::Other("\"><img src=x>".into()));
        let html = page(story.run.id, &story.stored(), None, &[]);
        assert!(html.contains("&lt;script&gt;") && html.contains("Refusals"), "{html}");
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}
