//! The handoffs of a run over time, as a drawing.

use super::gather::Gathered;
use super::{Page, share};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 190.0;
const ROW: f64 = 20.0;
/// Minimum width of a bar, so that short ones are visible.
const LEAST: f64 = 2.0;

/// Draws a row for each handoff: pale while it was open, full while an agent worked on it.
pub(super) fn draw(page: &mut Page, told: &Gathered, most: usize) {
    let rows = &told.rows[..told.rows.len().min(most)];
    let height = ROW * rows.len() as f64 + 4.0;
    page.raw(&format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"The handoffs over time\">\n"
    ));
    for (number, row) in rows.iter().enumerate() {
        let top = ROW * number as f64 + 4.0;
        page.raw("<text x=\"0\"").number("y", top + 11.0).raw(">");
        let name: String =
            format!("{} {} → {}", row.id, row.from, row.to).chars().take(32).collect();
        page.text(&name).raw("</text>");
        let whole = if row.is_person() { "person" } else { "whole" };
        bar(page, whole, told, (row.began, row.ended.unwrap_or(told.ended)), (top, 14.0));
        for (began, ended, broke) in &row.turns {
            let class = if *broke { "broke" } else { "turn" };
            bar(page, class, told, (*began, *ended), (top + 3.0, 8.0));
        }
        page.raw("\n");
    }
    page.raw("</svg>\n");
    if told.rows.len() > most {
        page.raw("<p>Only the first handoffs are drawn; all are listed below.</p>\n");
    }
}

fn bar(
    page: &mut Page,
    class: &str,
    told: &Gathered,
    (began, ended): (stafette_core::Time, stafette_core::Time),
    (top, height): (f64, f64),
) {
    let place = |at| LEFT + share(told, at) * (WIDTH - LEFT - LEAST);
    let (from, to) = (place(began), place(ended));
    page.raw(&format!("<rect class=\"{class}\""));
    page.number("x", from).number("y", top).number("width", (to - from).max(LEAST));
    page.number("height", height).raw("/>");
}
