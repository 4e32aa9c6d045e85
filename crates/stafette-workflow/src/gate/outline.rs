//! The parts of Markdown that the gate reads: headings, tables, code and text.

use std::ops::Range;

/// A Markdown document, reduced to the parts that the gate reads.
pub(super) struct Outline<'a> {
    blocks: Vec<Block<'a>>,
}

pub(super) struct Block<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
}

pub(super) type Row = (Vec<String>, Range<usize>);

pub(super) enum Kind {
    Heading { level: usize, title: String },
    Table { header: Vec<String>, rows: Vec<Row> },
    Code,
    Text,
}

impl<'a> Outline<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut blocks: Vec<Block<'a>> = Vec::new();
        let mut fence: Option<&str> = None;
        for (line, span) in lines(text) {
            let bare = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
            if let Some(open) = fence {
                if mark == Some(open) {
                    fence = None;
                } else {
                    blocks.push(Block { kind: Kind::Code, text: line, span });
                }
            } else if mark.is_some() {
                fence = mark;
            } else if let Some((level, title)) = heading(line) {
                blocks.push(Block { kind: Kind::Heading { level, title }, text: line, span });
            } else if bare.starts_with('|') {
                row(&mut blocks, text, line, span);
            } else if !bare.is_empty() && !bare.chars().all(|c| c == '-') {
                blocks.push(Block { kind: Kind::Text, text: line, span });
            }
        }
        Outline { blocks }
    }

    /// Returns a section's heading and everything below it.
    pub(super) fn section(&self, name: &str) -> Option<&[Block<'a>]> {
        let level_of = |block: &Block<'_>| match &block.kind {
            Kind::Heading { level, title } => Some((*level, title.eq_ignore_ascii_case(name))),
            _ => None,
        };
        let start = self.blocks.iter().position(|b| level_of(b).is_some_and(|(_, it)| it))?;
        let (level, _) = level_of(&self.blocks[start])?;
        let rest = &self.blocks[start + 1..];
        let end = rest.iter().position(|b| level_of(b).is_some_and(|(other, _)| other <= level));
        Some(&self.blocks[start..end.map_or(self.blocks.len(), |end| start + 1 + end)])
    }
}

impl Block<'_> {
    pub(super) fn table(&self) -> Option<(&[String], &[Row])> {
        match &self.kind {
            Kind::Table { header, rows } => Some((header, rows)),
            _ => None,
        }
    }
}

/// Adds a row to the current table, or starts a table.
fn row<'a>(blocks: &mut Vec<Block<'a>>, text: &'a str, line: &str, span: Range<usize>) {
    let cells: Vec<String> = line
        .trim()
        .trim_matches('|')
        .split('|')
        .map(|cell| cell.replace(['`', '*'], "").trim().to_owned())
        .collect();
    let ruler = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
    match blocks.last_mut() {
        Some(Block { kind: Kind::Table { rows, .. }, text: whole, span: place })
            if text[place.end..span.start].trim_matches(['\r', '\n']).is_empty()
                && text[place.end..span.start].matches('\n').count() == 1 =>
        {
            if !ruler {
                rows.push((cells, span.clone()));
            }
            place.end = span.end;
            *whole = &text[place.clone()];
        }
        _ => blocks.push(Block {
            kind: Kind::Table { header: cells, rows: Vec::new() },
            text: &text[span.clone()],
            span,
        }),
    }
}

/// Returns the level and the text of a heading, without its number.
fn heading(line: &str) -> Option<(usize, String)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let title = line[level..].strip_prefix(' ').filter(|_| (1..=6).contains(&level))?;
    let title = title.trim().trim_end_matches('#').trim();
    let numbered = title.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some((level, if numbered.starts_with(' ') { numbered.trim().into() } else { title.into() }))
}

/// Returns the lines of a text with their positions, without their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        let line = line.trim_end_matches(['\r', '\n']);
        (line, at..at + line.len())
    })
}
