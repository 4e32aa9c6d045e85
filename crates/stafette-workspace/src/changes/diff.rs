//! What a change looks like, line by line.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use stafette_core::change::{Action, Change, Content, FilePath};

use super::{ChangeError, Changes};

/// Larger files are not compared line by line, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// How many lines around a difference are shown.
const AROUND: usize = 3;

/// What happens to one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct FileDiff {
    /// The file.
    pub file: FilePath,
    /// What is done to it.
    pub action: Action,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// The permissions, when they differ: before and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<(u32, u32)>,
    /// Why there are no lines: it is no text, too large, or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unshown: Option<&'static str>,
    /// The places that differ.
    pub hunks: Vec<Hunk>,
}

/// A place that differs, with some lines around it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Hunk {
    /// Its first line before, counted from 1.
    pub old_start: usize,
    /// How many lines it has before.
    pub old_lines: usize,
    /// Its first line after, counted from 1.
    pub new_start: usize,
    /// How many lines it has after.
    pub new_lines: usize,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Line {
    /// `' '`, `'+'` or `'-'`.
    pub sign: char,
    /// The text without its end.
    pub text: String,
    /// Whether the file ends without the end of this line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unended: bool,
}

impl Changes {
    /// What a change does, line by line.
    pub fn diff(&self, change: &Change) -> Result<Vec<FileDiff>, ChangeError> {
        Ok(change
            .edits
            .iter()
            .map(|edit| {
                let mut diff = FileDiff {
                    file: edit.file.clone(),
                    action: edit.action,
                    from: edit.from.clone(),
                    added: 0,
                    removed: 0,
                    mode: modes(edit.before.as_ref(), edit.after.as_ref()),
                    unshown: None,
                    hunks: Vec::new(),
                };
                match (self.text(edit.before.as_ref()), self.text(edit.after.as_ref())) {
                    (Ok(before), Ok(after)) => compare(&mut diff, &before, &after),
                    (Err(why), _) | (_, Err(why)) => diff.unshown = Some(why),
                }
                diff
            })
            .collect())
    }

    fn text(&self, content: Option<&Content>) -> Result<String, &'static str> {
        let Some(content) = content else { return Ok(String::new()) };
        if content.size > LARGEST {
            return Err("too large to be shown");
        }
        let bytes =
            self.store.blob(&content.sha256).map_err(|_| "what it was is not known here")?;
        if bytes.contains(&0) {
            return Err("not a text");
        }
        String::from_utf8(bytes).map_err(|_| "not a text")
    }
}

fn modes(before: Option<&Content>, after: Option<&Content>) -> Option<(u32, u32)> {
    let (before, after) = (before?.mode, after?.mode);
    ((before ^ after) & 0o100 != 0).then_some((before, after))
}

fn compare(diff: &mut FileDiff, before: &str, after: &str) {
    let compared =
        TextDiff::configure().timeout(std::time::Duration::from_secs(2)).diff_lines(before, after);
    for group in compared.grouped_ops(AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| compared.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
            };
            diff.added += usize::from(sign == '+');
            diff.removed += usize::from(sign == '-');
            let text = change.value().trim_end_matches('\n').to_owned();
            lines.push(Line { sign, text, unended: change.missing_newline() });
        }
        diff.hunks.push(Hunk {
            old_start: old.start + usize::from(!old.is_empty()),
            old_lines: old.len(),
            new_start: new.start + usize::from(!new.is_empty()),
            new_lines: new.len(),
            lines,
        });
    }
}
