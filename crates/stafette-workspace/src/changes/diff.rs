//! The diff of a change, line by line.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use stafette_core::change::{Action, Change, Content, FilePath};

use super::{ChangeError, Changes};

/// The size in bytes above which files are not compared line by line.
const LARGEST: u64 = 1024 * 1024;

/// The number of context lines around a difference.
const AROUND: usize = 3;

/// The diff of one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct FileDiff {
    /// The path of the file.
    pub file: FilePath,
    /// The action of the edit.
    pub action: Action,
    /// The old path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The permissions before and after; `None` if they are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<(u32, u32)>,
    /// True if the file is executable: after the edit, or before it is deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// The reason why there are no lines: not text, too large, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unshown: Option<&'static str>,
    /// The parts that differ.
    pub hunks: Vec<Hunk>,
}

/// A part that differs, with context lines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Hunk {
    /// The first line in the old file, from 1.
    pub old_start: usize,
    /// The number of lines in the old file.
    pub old_lines: usize,
    /// The first line in the new file, from 1.
    pub new_start: usize,
    /// The number of lines in the new file.
    pub new_lines: usize,
    /// The lines in order.
    pub lines: Vec<Line>,
}

/// One line of a diff.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Line {
    /// `' '` for context, `'+'` for added, `'-'` for removed.
    pub sign: char,
    /// The text without its line end.
    pub text: String,
    /// True if the file ends here without a line end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unended: bool,
}

impl Changes {
    /// Returns the diff of a change.
    pub fn diff(&self, change: &Change) -> Result<Vec<FileDiff>, ChangeError> {
        Ok(change
            .edits
            .iter()
            .map(|edit| {
                let last = edit.after.as_ref().or(edit.before.as_ref());
                let mut diff = FileDiff {
                    file: edit.file.clone(),
                    action: edit.action,
                    from: edit.from.clone(),
                    added: 0,
                    removed: 0,
                    mode: modes(edit.before.as_ref(), edit.after.as_ref()),
                    executable: last.is_some_and(|last| last.mode & 0o100 != 0),
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
