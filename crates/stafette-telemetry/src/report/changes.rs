//! The changes of a run, proposed and applied.

use stafette_core::change::Change;
use stafette_engine::FileDiff;

use super::Page;

/// Maximum size of all diffs together, in bytes.
const MOST: usize = 512 * 1024;

/// A set of edits that was proposed in the run.
#[derive(Clone, Debug)]
pub struct Set {
    pub change: Change,
    pub diff: Vec<FileDiff>,
}

pub(super) fn tell(page: &mut Page, diff: &str, sets: &[Set]) {
    if sets.is_empty() && diff.trim().is_empty() {
        return;
    }
    page.raw("<h2>Changes</h2>\n");
    let mut room = MOST;
    match sets {
        [] => lines(page, diff.lines(), &mut room),
        sets => sets.iter().for_each(|set| one(page, set, &mut room)),
    }
    if room == 0 {
        page.raw("<p>The rest of the changes is left out.</p>\n");
    }
}

fn one(page: &mut Page, Set { change, diff }: &Set, room: &mut usize) {
    let head = format!("{}: {}, by {}", change.id, change.status.as_str(), change.author);
    page.raw("<h3>").text(&head).raw("</h3>\n<p>").text(&change.reason).raw("</p>\n");
    if let Some(failure) = &change.failure {
        page.raw("<p>").text(failure).raw("</p>\n");
    }
    if !change.comments.is_empty() {
        page.table(&["Said by", "About", "What"], |page| {
            for comment in &change.comments {
                let line = comment.line.map(|line| format!(":{line}")).unwrap_or_default();
                let place = format!("{}{line}", comment.file.as_deref().unwrap_or_default());
                page.row(&[&comment.by, &place, &comment.text]);
            }
        });
    }
    let all: Vec<String> = diff.iter().flat_map(unified).collect();
    lines(page, all.iter().map(String::as_str), room);
}

/// Returns a file's diff in the unified format.
fn unified(file: &FileDiff) -> Vec<String> {
    let from = file.from.as_ref().unwrap_or(&file.file);
    let mut lines = vec![format!("--- {from}"), format!("+++ {}", file.file)];
    lines.extend(file.unshown.map(|why| format!(" {why}")));
    for hunk in &file.hunks {
        let (old, new) = ((hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines));
        lines.push(format!("@@ -{},{} +{},{} @@", old.0, old.1, new.0, new.1));
        lines.extend(hunk.lines.iter().map(|line| format!("{}{}", line.sign, line.text)));
    }
    lines
}

/// Writes lines of a diff, as long as there is room.
fn lines<'a>(page: &mut Page, lines: impl Iterator<Item = &'a str>, room: &mut usize) {
    page.raw("<pre>");
    for line in lines {
        if *room < line.len() + 1 {
            *room = 0;
            break;
        }
        *room -= line.len() + 1;
        let class = match line.as_bytes().first() {
            _ if line.starts_with("+++") || line.starts_with("---") => "file",
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'@') => "at",
            _ => "",
        };
        page.raw(&format!("<span class=\"{class}\">")).text(line).raw("</span>\n");
    }
    page.raw("</pre>\n");
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stafette_core::RunId;
    use uuid::Uuid;

    use super::*;

    fn set(line: &str) -> Set {
        let change = json!({
            "id": "c3", "status": "failed", "author": { "agent": "builder" },
            "reason": "Add <login>", "edits": [], "proposed_at": "", "failure": "the tests fail",
            "comments": [{ "by": "ada", "at": "", "file": "a.rs", "line": 7, "text": "why?" }],
        });
        let change: Change = serde_json::from_value(change).expect("a change");
        let diff = FileDiff {
            file: "a.rs".parse().expect("a path"),
            action: stafette_core::change::Action::Modify,
            from: None,
            added: 1,
            removed: 0,
            mode: None,
            executable: false,
            unshown: None,
            hunks: vec![stafette_engine::Hunk {
                old_start: 1,
                old_lines: 0,
                new_start: 1,
                new_lines: 1,
                lines: vec![stafette_engine::Line {
                    sign: '+',
                    text: line.to_owned(),
                    unended: false,
                }],
            }],
        };
        Set { change, diff: vec![diff] }
    }

    fn page(sets: &[Set]) -> String {
        super::super::page(RunId(Uuid::nil()), &[], Some("+++ of a worktree\n"), sets)
    }

    #[test]
    fn b_17_a_report_has_what_was_proposed_line_by_line() {
        let html = page(&[set("let x = 1 < 2;")]);
        for wanted in ["c3: failed, by builder", "Add &lt;login&gt;", "the tests fail", "a.rs:7"] {
            assert!(html.contains(wanted), "{wanted} in {html}");
        }
        assert!(html.contains("<span class=\"add\">+let x = 1 &lt; 2;</span>"), "{html}");
        assert!(!html.contains("of a worktree"), "said once");
        assert!(page(&[]).contains("of a worktree"));
    }

    #[test]
    fn b_17_a_report_can_be_mailed_however_much_was_changed() {
        let html = page(&[set(&"x".repeat(MOST / 2)), set(&"y".repeat(MOST))]);
        assert!(html.len() < MOST * 2 && html.contains("is left out"), "{}", html.len());
    }
}
