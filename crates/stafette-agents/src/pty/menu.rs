//! A menu on a screen: options below each other, one of them marked.

/// The signs that mark an option, as the programs draw them.
const MARKS: [char; 7] = ['❯', '›', '●', '◉', '▸', '→', '>'];

/// Lines that frame a menu, and the bar that shows how far it is scrolled.
const FRAMES: [char; 5] = ['│', '┃', '|', '║', '█'];

/// The most options that are read.
const OPTIONS: usize = 12;

/// A menu that a program shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Menu {
    /// The options from top to bottom, without numbers.
    pub(super) options: Vec<String>,
    pub(super) marked: usize,
    /// The row of the first option.
    pub(super) top: usize,
}

/// A row of the screen: where its text begins, whether a mark is in front of it, and the text.
struct Row {
    column: usize,
    marked: bool,
    text: String,
}

impl Menu {
    /// Reads the last menu of a screen; `None` if there is none.
    pub(super) fn read(screen: &[String]) -> Option<Self> {
        let rows: Vec<Row> = screen.iter().map(|row| Row::read(row)).collect();
        let menu = |at: &usize| Menu::around(&rows, *at);
        (0..rows.len()).rev().filter(|at| rows[*at].marked).find_map(|at| menu(&at))
    }

    /// The menu with the marked option in this row.
    fn around(rows: &[Row], at: usize) -> Option<Self> {
        let column = rows[at].column;
        // The details of an option stand below it, further to the right.
        let goes_on = |row: &&Row| !row.text.is_empty() && row.column >= column && !row.marked;
        let is_option = |row: &&Row| row.column == column;
        let above = rows[..at].iter().enumerate().rev().take_while(|(_, row)| goes_on(row));
        let above = above.filter(|(_, row)| is_option(row)).take(OPTIONS);
        let (places, above): (Vec<usize>, Vec<&Row>) = above.unzip();
        let top = places.last().copied().unwrap_or(at);
        let below = rows[at + 1..].iter().take_while(goes_on).filter(is_option).take(OPTIONS);
        let marked = above.len();
        let all = above.into_iter().rev().chain([&rows[at]]).chain(below);
        let options: Vec<String> = all.map(|row| row.text.clone()).collect();
        // A single one is a prompt, not a menu.
        (options.len() > 1 && !rows[at].text.is_empty()).then_some(Menu { options, marked, top })
    }

    /// The place of the option with this text, in any case.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let text = text.to_lowercase();
        self.options.iter().position(|option| option.to_lowercase() == text)
    }

    /// The place of the option that is this text or begins with it, in any case.
    pub(super) fn find_beginning(&self, text: &str) -> Option<usize> {
        let begins = text.to_lowercase();
        let begun = |option: &String| option.to_lowercase().starts_with(&begins);
        self.find(text).or_else(|| self.options.iter().position(begun))
    }

    /// The option that says no, if there is one.
    pub(super) fn no(&self) -> Option<&str> {
        const NO: [&str; 8] = ["no", "deny", "reject", "cancel", "quit", "decline", "skip", "exit"];
        let says_no = |option: &&String| {
            let option = option.to_lowercase();
            let word = option.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            NO.contains(&word)
        };
        self.options.iter().find(says_no).map(String::as_str)
    }
}

impl Row {
    fn read(row: &str) -> Self {
        let (mut column, mut marked) = (0, false);
        let mut rest = row.trim_end().trim_end_matches(FRAMES).trim_end();
        while let Some(sign) = rest.chars().next() {
            let is_mark = MARKS.contains(&sign) && !marked;
            if !(sign.is_whitespace() || FRAMES.contains(&sign) || sign == '○' || is_mark) {
                break;
            }
            marked |= is_mark;
            column += 1;
            rest = &rest[sign.len_utf8()..];
        }
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let numbered = digits > 0 && rest[digits..].starts_with(['.', ')']);
        let text = if numbered { rest[digits + 1..].trim_start() } else { rest };
        Row { column, marked, text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(screen: &str) -> Option<Menu> {
        Menu::read(&screen.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn b_23_a_menu_is_read_as_the_programs_draw_it() {
        let trust = menu(" Security guide\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter");
        let trust = trust.expect("a menu");
        assert_eq!(trust.options, ["No, exit", "Yes, I trust this folder"]);
        assert_eq!(
            (trust.marked, trust.find_beginning("yes, i trust"), trust.no()),
            (0, Some(1), Some("No, exit"))
        );
        let boxed = menu(
            "│ Allow?      │\n│             │\n│   1. Allow  │\n│ ● 2. Always │\n│   3. No (esc) │",
        );
        let boxed = boxed.expect("a menu");
        assert_eq!((boxed.options.len(), boxed.marked, boxed.no()), (3, 1, Some("No (esc)")));
        assert_eq!(boxed.options[0], "Allow");
        let scrolled = menu(" Allow?     █\n › 1. Yes   █\n   2. No    █");
        assert_eq!(scrolled.expect("a menu").options, ["Yes", "No"], "a bar is no part of them");
        let wrapped = menu(
            "› 1. Yes, proceed (y)\n  2. Yes, and do not ask again for\n     `sh` (p)\n  3. No (esc)",
        );
        assert_eq!(wrapped.expect("a menu").options.len(), 3, "details are no options");
    }

    #[test]
    fn b_13_an_option_is_not_taken_for_another_that_begins_like_it() {
        let read =
            menu("Go on?\n❯ 1. Yes, and don't ask again\n  2. Yes\n  3. No").expect("a menu");
        assert_eq!((read.find("yes"), read.find_beginning("yes"), read.top), (Some(1), Some(1), 1));
        assert_eq!((read.find("ye"), read.find_beginning("ye")), (None, Some(0)));
    }

    #[test]
    fn b_23_a_prompt_is_no_menu() {
        assert_eq!(menu("❯ Try \"edit main.rs\"\n\n  ? for shortcuts"), None);
        assert_eq!(menu("› Ask Codex to do anything\n\n  gpt-5.5"), None);
        assert_eq!(menu(""), None);
    }
}
