//! Reads the tables of `ARCHITECTURE.md` that rules are based on.

use std::collections::BTreeSet;

use super::tree::Tree;

/// The file with the tables.
pub(super) const PATH: &str = "ARCHITECTURE.md";

/// A row of a table: the names in its first and its last cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) values: BTreeSet<String>,
}

/// Returns the rows of the table after `<!-- tidy: NAME -->`; `None` if there is no such table.
pub(super) fn table(tree: &Tree, name: &str) -> Option<Vec<Row>> {
    let mark = format!("<!-- tidy: {name} -->");
    let text = &tree.get(PATH)?.text;
    let rows: Vec<Row> = (1..)
        .zip(text.lines())
        .skip_while(|(_, line)| line.trim() != mark)
        .skip_while(|(_, line)| !line.starts_with('|'))
        .take_while(|(_, line)| line.starts_with('|'))
        .filter_map(|(line, text)| row(line, text))
        .collect();
    (!rows.is_empty()).then_some(rows)
}

/// Parses a row. The head of a table and the line under it name nothing, so they are no rows.
fn row(line: usize, text: &str) -> Option<Row> {
    let cells: Vec<&str> = text.trim().trim_matches('|').split('|').collect();
    let name = names(cells.first()?).next()?.to_owned();
    let values = names(cells.last()?).map(str::to_owned).collect();
    Some(Row { line, name, values })
}

/// Returns the texts between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_after_its_mark() {
        let text = "|`no`|`no`|\n\n<!-- tidy: crates -->\n\n| crate | what | uses |\n|---|---|---|\n\
                    | `a` | does `this` | `b`, `c` |\n| `b` | that | – |\n\n| `d` | | |\n";
        let tree = Tree::of([(PATH, text)]);
        let rows = table(&tree, "crates").expect("a table");
        let told: Vec<String> =
            rows.iter().map(|row| format!("{}:{} {:?}", row.line, row.name, row.values)).collect();
        assert_eq!(told, [r#"7:a {"b", "c"}"#, "8:b {}"]);
        assert_eq!(table(&tree, "other"), None);
    }
}
