//! A possible frame, processed byte by byte.

use super::{ATTRIBUTES_LIMIT, FRAME_LIMIT, Frame, FrameError, JSON_DEPTH_LIMIT, TYPE_LIMIT, Word};

/// The maximum number of bytes from the first bracket to the colon after the word, including
/// styling.
const OPENING_LIMIT: usize = 512;

/// The state of the candidate after a byte.
pub(super) enum Step {
    /// It may still become a frame.
    More,
    /// It did not open: ordinary text.
    Not,
    /// It opened and is malformed.
    Wrong(FrameError),
    Done(Frame),
}

/// The way the bytes come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A stream of text, whose lines may be wrapped.
    Stream,
    /// The output of a program to its terminal: whatever moves the cursor ends the text.
    Terminal,
    /// The rows of a screen, on which Markdown programs draw frames in their own way.
    Screen,
}

/// A possible frame that began with a `<`.
#[derive(Debug)]
pub(super) struct Candidate {
    source: Source,
    stage: Stage,
    escape: Escape,
    wrap: Wrap,
    /// The number of brackets that opened it, and must close it.
    brackets: u8,
    /// The bytes taken so far, and how many of them are the opening.
    taken: usize,
    opening: usize,
    kind: Vec<u8>,
    attributes: Vec<u8>,
    body: Option<Vec<u8>>,
    link: Vec<u8>,
    /// The progress of another opening at the end of the text.
    reopening: Reopening,
}

#[derive(Debug)]
enum Stage {
    Brackets,
    Word {
        matched: usize,
    },
    Type,
    Attributes,
    /// Before the first byte of the payload, which determines its kind.
    Payload {
        blanks: u32,
    },
    Text,
    Json(Json),
    /// The link target that a terminal program wrote behind the link's text.
    Link,
    Close {
        seen: u8,
    },
}

#[derive(Debug, Default)]
struct Json {
    depth: u32,
    /// One bit per level: set for an object.
    objects: u64,
    string: bool,
    escaped: bool,
}

#[derive(Debug, Default)]
struct Reopening {
    brackets: u8,
    letters: usize,
}

/// The position of the stream within an escape sequence.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Escape {
    None,
    Started,
    /// `ESC (` and similar: one more byte follows.
    Intermediate,
    Csi,
    /// OSC, DCS and similar: anything up to BEL or `ESC \`.
    Text,
    TextEnding,
}

/// The position of the stream after a line break: terminals wrap, and programs indent wrapped
/// lines.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wrap {
    Inside,
    Broken { columns: u32 },
}

impl Candidate {
    pub(super) fn new(source: Source) -> Self {
        Candidate {
            source,
            stage: Stage::Brackets,
            escape: Escape::None,
            wrap: Wrap::Inside,
            brackets: 0,
            taken: 0,
            opening: 0,
            kind: Vec::new(),
            attributes: Vec::new(),
            body: None,
            link: Vec::new(),
            reopening: Reopening::default(),
        }
    }

    /// Returns the length of its opening in bytes; `None` if it has not opened yet.
    pub(super) fn opening(&self) -> Option<usize> {
        (self.opening > 0).then_some(self.opening)
    }

    /// Returns the number of bytes it has taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Takes the next byte of the stream.
    pub(super) fn take(&mut self, byte: u8, word: &Word) -> Step {
        self.taken += 1;
        if self.opening == 0 && self.taken > OPENING_LIMIT {
            return Step::Not;
        }
        if self.taken > FRAME_LIMIT {
            return Step::Wrong(FrameError::TooLong);
        }
        if self.escape != Escape::None {
            return self.escaped(byte);
        }
        match (byte, self.wrap) {
            (0x1b, _) => {
                self.escape = Escape::Started;
                Step::More
            }
            (b'\r' | b'\n', _) if self.source == Source::Terminal && !self.is_between_parts() => {
                self.wrong(FrameError::Moved)
            }
            (b'\r', _) => Step::More,
            (b'\n', Wrap::Broken { .. }) if !self.may_have_blank_lines() => {
                self.wrong(FrameError::BlankLine)
            }
            (b'\n', _) => {
                self.wrap = Wrap::Broken { columns: 0 };
                Step::More
            }
            (b' ', Wrap::Broken { columns }) => {
                self.wrap = Wrap::Broken { columns: columns.saturating_add(1) };
                Step::More
            }
            (b'\t', Wrap::Broken { columns }) => {
                self.wrap = Wrap::Broken { columns: columns.saturating_add(8) };
                Step::More
            }
            (_, Wrap::Broken { columns }) => {
                self.wrap = Wrap::Inside;
                // A single space is where the line happened to break; more is an indent.
                if columns == 1 && matches!(self.stage, Stage::Text | Stage::Json(_)) {
                    match self.content(b' ', word) {
                        Step::More => {}
                        end => return end,
                    }
                }
                self.content(byte, word)
            }
            (_, Wrap::Inside) => self.content(byte, word),
        }
    }

    fn is_drawn(&self) -> bool {
        self.source == Source::Screen
    }

    fn wrong(&self, fault: FrameError) -> Step {
        if self.opening == 0 { Step::Not } else { Step::Wrong(fault) }
    }

    /// True only between the parts of a JSON document: nothing else spans an empty line.
    fn may_have_blank_lines(&self) -> bool {
        match &self.stage {
            Stage::Json(json) => !json.string,
            Stage::Close { seen: 0 } => true,
            _ => false,
        }
    }

    /// True where a line break means nothing.
    fn is_between_parts(&self) -> bool {
        self.may_have_blank_lines() || matches!(self.stage, Stage::Payload { .. })
    }

    /// Skips escape sequences. One that would swallow a `<`, or that another one interrupts, ends
    /// the candidate: no two candidates can then hide a third from each other for long, which keeps
    /// the scanner linear.
    fn escaped(&mut self, byte: u8) -> Step {
        let moves = match self.escape {
            Escape::Started => {
                matches!(byte, b'0'..=b'O' | b'Q'..=b'W' | b'Y' | b'Z' | b'`'..=b'~')
            }
            Escape::Csi => matches!(byte, 0x40..=0x7e) && byte != b'm',
            _ => false,
        };
        if moves && byte != b'<' && self.source == Source::Terminal {
            return self.wrong(FrameError::Moved);
        }
        self.escape = match (self.escape, byte) {
            (Escape::Started, b'[') => Escape::Csi,
            (Escape::Started, b']' | b'P' | b'X' | b'^' | b'_') => Escape::Text,
            (Escape::Started | Escape::Intermediate, 0x20..=0x2f) => Escape::Intermediate,
            (Escape::Started | Escape::Intermediate | Escape::Csi, b'<') => {
                return self.wrong(FrameError::Escape);
            }
            (Escape::Started | Escape::Intermediate, 0x30..=0x7e) => Escape::None,
            (Escape::Csi, 0x20..=0x3f) => Escape::Csi,
            (Escape::Csi, 0x40..=0x7e) => Escape::None,
            (Escape::Text, 0x07) | (Escape::TextEnding, b'\\') => Escape::None,
            (Escape::Text, 0x1b) => Escape::TextEnding,
            (Escape::Text, other) if other >= 0x20 => Escape::Text,
            _ => return self.wrong(FrameError::Escape),
        };
        Step::More
    }

    fn content(&mut self, byte: u8, word: &Word) -> Step {
        let drawn = self.is_drawn();
        match &mut self.stage {
            Stage::Brackets => self.bracket(byte, word),
            Stage::Word { matched } => match word.as_str().as_bytes().get(*matched) {
                Some(letter) if *letter == byte => {
                    *matched += 1;
                    Step::More
                }
                None if byte == b':' => {
                    self.opening = self.taken;
                    self.stage = Stage::Type;
                    Step::More
                }
                _ => Step::Not,
            },
            Stage::Type => self.type_byte(byte, word),
            Stage::Attributes => self.attribute_byte(byte),
            Stage::Payload { blanks } => match byte {
                // On a screen, a gap is where letters are yet to be drawn.
                b' ' | b'\t' if drawn && *blanks > 0 => Step::Wrong(FrameError::Unclosed),
                b' ' | b'\t' => {
                    *blanks += 1;
                    Step::More
                }
                _ => self.payload_byte(byte, word),
            },
            Stage::Text => self.text_byte(byte, word),
            Stage::Json(_) => self.json_byte(byte),
            Stage::Link => self.link_byte(byte, word),
            Stage::Close { seen } => match byte {
                b'>' => {
                    *seen += 1;
                    if *seen == self.brackets { self.done(word) } else { Step::More }
                }
                b' ' | b'\t' if *seen == 0 => Step::More,
                b'(' if *seen == 0 && self.brackets == 2 => self.begin_link(byte),
                _ => Step::Wrong(FrameError::Unclosed),
            },
        }
    }

    fn bracket(&mut self, byte: u8, word: &Word) -> Step {
        if byte == b'<' && self.brackets < 3 {
            self.brackets += 1;
            return Step::More;
        }
        let enough = self.brackets == 3 || (self.is_drawn() && self.brackets == 2);
        if enough && word.as_str().as_bytes().first() == Some(&byte) {
            self.stage = Stage::Word { matched: 1 };
            return Step::More;
        }
        Step::Not
    }

    fn type_byte(&mut self, byte: u8, word: &Word) -> Step {
        match byte {
            b'A'..=b'Z' if self.kind.len() < TYPE_LIMIT => self.kind.push(byte),
            b'0'..=b'9' | b'_' if (1..TYPE_LIMIT).contains(&self.kind.len()) => {
                self.kind.push(byte);
            }
            _ if self.kind.is_empty() => return Step::Wrong(FrameError::Type),
            b';' => self.stage = Stage::Attributes,
            b':' => self.stage = Stage::Payload { blanks: 0 },
            b'>' => {
                self.stage = Stage::Close { seen: 0 };
                return self.content(byte, word);
            }
            b' ' | b'(' if self.brackets == 2 => return self.begin_link(byte),
            _ => return Step::Wrong(FrameError::Type),
        }
        Step::More
    }

    fn attribute_byte(&mut self, byte: u8) -> Step {
        match byte {
            b':' => self.stage = Stage::Payload { blanks: 0 },
            b'>' => self.stage = Stage::Close { seen: 1 },
            b'!'..=b'~' if byte != b'<' && self.attributes.len() < ATTRIBUTES_LIMIT => {
                self.attributes.push(byte);
            }
            _ => return Step::Wrong(FrameError::Attributes),
        }
        Step::More
    }

    fn payload_byte(&mut self, byte: u8, word: &Word) -> Step {
        self.body.get_or_insert_default();
        match byte {
            b'{' | b'[' => {
                self.stage = Stage::Json(Json::default());
                self.json_byte(byte)
            }
            _ => {
                self.stage = Stage::Text;
                self.text_byte(byte, word)
            }
        }
    }

    fn text_byte(&mut self, byte: u8, word: &Word) -> Step {
        if (byte < 0x20 && byte != b'\t') || byte == 0x7f {
            return Step::Wrong(FrameError::Control);
        }
        if self.reopening.take(byte, word, if self.is_drawn() { 2 } else { 3 }) {
            return Step::Wrong(FrameError::Reopened);
        }
        let body = self.body.get_or_insert_default();
        body.push(byte);
        let closing = usize::from(self.brackets);
        if byte == b'>' && body.ends_with(&b">>>"[..closing]) {
            body.truncate(body.len() - closing);
            return self.done(word);
        }
        Step::More
    }

    fn json_byte(&mut self, byte: u8) -> Step {
        let Stage::Json(json) = &mut self.stage else { return Step::More };
        if byte < 0x20 && byte != b'\t' {
            return Step::Wrong(FrameError::Control);
        }
        self.body.get_or_insert_default().push(byte);
        if json.string {
            match byte {
                _ if json.escaped => json.escaped = false,
                b'\\' => json.escaped = true,
                b'"' => json.string = false,
                _ => {}
            }
            return Step::More;
        }
        match byte {
            b'"' => json.string = true,
            b'{' | b'[' if json.depth == JSON_DEPTH_LIMIT => {
                return Step::Wrong(FrameError::TooDeep);
            }
            b'{' | b'[' => {
                json.depth += 1;
                json.objects = json.objects << 1 | u64::from(byte == b'{');
            }
            b'}' | b']' => {
                if (json.objects & 1 == 1) != (byte == b'}') {
                    return Step::Wrong(FrameError::Json);
                }
                json.depth -= 1;
                json.objects >>= 1;
                if json.depth == 0 {
                    self.stage = Stage::Close { seen: 0 };
                }
            }
            b' '
            | b'\t'
            | b','
            | b':'
            | b'0'..=b'9'
            | b'+'
            | b'-'
            | b'.'
            | b'E'
            | b'a'
            | b'e'
            | b'f'
            | b'l'
            | b'n'
            | b'r'
            | b's'
            | b't'
            | b'u' => {}
            _ => return Step::Wrong(FrameError::Json),
        }
        Step::More
    }

    fn begin_link(&mut self, byte: u8) -> Step {
        self.stage = Stage::Link;
        self.link.push(byte);
        Step::More
    }

    fn link_byte(&mut self, byte: u8, word: &Word) -> Step {
        if byte == b'<' || byte < 0x20 {
            return Step::Wrong(FrameError::Unclosed);
        }
        self.link.push(byte);
        if self.link.ends_with(b">>") {
            self.link.truncate(self.link.len() - 2);
            return self.done(word);
        }
        Step::More
    }

    fn done(&mut self, word: &Word) -> Step {
        match self.frame(word) {
            Ok(frame) => Step::Done(frame),
            Err(fault) => Step::Wrong(fault),
        }
    }

    fn frame(&mut self, word: &Word) -> Result<Frame, FrameError> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| FrameError::Encoding);
        let mut frame = Frame {
            kind: text(std::mem::take(&mut self.kind))?,
            attributes: attributes(&text(std::mem::take(&mut self.attributes))?)?,
            body: self.body.take().map(text).transpose()?,
        };
        let link = text(std::mem::take(&mut self.link))?;
        if let Some(body) = &mut frame.body {
            if body.starts_with(['{', '[']) {
                serde_json::from_str::<serde::de::IgnoredAny>(body)
                    .map_err(|_| FrameError::Json)?;
            } else {
                if self.is_drawn() && body.contains("  ") {
                    return Err(FrameError::Unclosed);
                }
                *body = body.trim().to_owned();
            }
        }
        if self.brackets == 2 {
            without_link(&mut frame, &link, word)?;
        }
        Ok(frame)
    }
}

impl Reopening {
    /// True if `byte` completes another opening.
    fn take(&mut self, byte: u8, word: &Word, brackets: u8) -> bool {
        if byte == b'<' {
            self.brackets = if self.letters > 0 { 1 } else { (self.brackets + 1).min(3) };
            self.letters = 0;
            return false;
        }
        let expected = word.as_str().as_bytes().get(self.letters).copied().unwrap_or(b':');
        if self.brackets < brackets || byte != expected {
            *self = Reopening::default();
            return false;
        }
        self.letters += 1;
        self.letters > word.as_str().len()
    }
}

fn attributes(text: &str) -> Result<Vec<(String, String)>, FrameError> {
    let pair = |part: &str| match part.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(FrameError::Attributes),
    };
    if text.is_empty() { Ok(Vec::new()) } else { text.split(';').map(pair).collect() }
}

/// Reverts what Markdown programs do to `<ODEI:…>`, which they take for a link: one bracket is
/// missing on each side, and the target may follow the text in parentheses. Links have no spaces.
fn without_link(frame: &mut Frame, link: &str, word: &Word) -> Result<(), FrameError> {
    let target = |frame: &Frame| format!("({word}:{frame})");
    if !link.is_empty() {
        return if link.trim() == target(frame) { Ok(()) } else { Err(FrameError::Unclosed) };
    }
    let Some(body) = &mut frame.body else { return Ok(()) };
    let begin = format!("({word}:{}", frame.kind);
    if let Some(at) = body.find(&begin) {
        let behind = body.split_off(at);
        body.truncate(body.trim_end().len());
        if behind != target(frame) {
            return Err(FrameError::Unclosed);
        }
    }
    match &frame.body {
        Some(body) if body.contains(char::is_whitespace) && !body.starts_with(['{', '[']) => {
            Err(FrameError::Unclosed)
        }
        _ => Ok(()),
    }
}
