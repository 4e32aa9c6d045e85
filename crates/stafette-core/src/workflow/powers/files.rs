//! The files that a command names: what it runs is as much a part of it as its words.

/// The programs that run the files among their arguments, or the command after them.
const RUNNERS: [&str; 36] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "python", "python3", "node",
    "deno", "bun", "ruby", "perl", "php", "lua", "java", "tsx", "ts-node", "uv", "npx", "make",
    "just", "env", "exec", "nohup", "nice", "sudo", "command", "timeout", "time", "xargs",
    "setsid", ".", "source",
];

/// The programs that read a command from the word after `-c`.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"];

/// The words in front of a command that are not its program.
const KEYWORDS: [&str; 11] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec"];

/// The depth to which commands within commands are read.
const DEPTH: usize = 4;

/// Lists the words of a command that may name files, as paths relative to the folder that it starts
/// in. Every argument counts; within the text of a shell, what is run there.
#[must_use]
pub fn named_files(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    of_command(words, "", DEPTH, &mut found);
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    found
}

/// Lists the files that a shell's text runs.
#[must_use]
pub fn run_by_shell(text: &str) -> Vec<String> {
    named_files(&["sh".to_owned(), "-c".to_owned(), text.to_owned()])
}

fn of_command(words: &[String], folder: &str, depth: usize, found: &mut Vec<String>) {
    let Some((program, arguments)) = words.split_first() else { return };
    // A bare name is looked for on the path, not in the project.
    if program.contains('/') {
        found.push(within(folder, program));
    }
    let mut shell = is_one_of(&SHELLS, program);
    let mut text_follows = false;
    for argument in arguments {
        match (argument.strip_prefix('-'), argument.split_once('=')) {
            _ if text_follows && depth > 0 => of_shell(argument, folder, depth - 1, found),
            (Some(_), Some((_, value))) => found.push(within(folder, value)),
            (Some(_), None) => {}
            (None, _) if argument.is_empty() => {}
            (None, _) => found.push(within(folder, argument)),
        }
        text_follows = shell && is_text_option(argument);
        shell |= is_one_of(&SHELLS, argument);
    }
}

/// True for `-c`, also among other letters, as in `-lc`.
fn is_text_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        letters.ends_with('c') && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

fn is_one_of(names: &[&str], program: &str) -> bool {
    names.contains(&program.rsplit('/').next().unwrap_or_default()) || names.contains(&program)
}

fn within(folder: &str, path: &str) -> String {
    match folder.is_empty() || path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{folder}/{path}"),
    }
}

/// Finds what the text of a shell runs: the first word of each of its commands, and the arguments
/// of those that run files. Words that the shell would compute are left out.
fn of_shell(text: &str, folder: &str, depth: usize, found: &mut Vec<String>) {
    let mut folder = folder.to_owned();
    for mut words in commands(text) {
        let assigns = |word: &String| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            })
        };
        let skipped = |word: &String| KEYWORDS.contains(&word.as_str()) || assigns(word);
        words.drain(..words.iter().take_while(|word| skipped(word)).count());
        match words.as_slice() {
            [cd, to] if cd == "cd" => folder = within(&folder, to),
            [program, ..] if is_one_of(&RUNNERS, program) => {
                of_command(&words, &folder, depth, found);
            }
            [program, ..] => of_command(std::slice::from_ref(program), &folder, depth, found),
            [] => {}
        }
    }
}

/// Cuts a shell's text into its commands, and those into words. A word that the shell would compute
/// is empty.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut cut = Cut::default();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                cut.open();
                rest.by_ref().take_while(|c| *c != '\'').for_each(|c| cut.word.push(c));
            }
            '"' => {
                cut.open();
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => cut.word.extend(rest.next()),
                        '$' | '`' => cut.computed = true,
                        c => cut.word.push(c),
                    }
                }
            }
            '\\' => {
                cut.open();
                cut.word.extend(rest.next().filter(|c| *c != '\n'));
            }
            ';' | '&' | '|' | '(' | ')' | '`' | '\n' => cut.end_command(),
            '<' => cut.end_word(),
            '>' => {
                // The number of a stream in front of it is no word.
                if cut.word.bytes().all(|byte| byte.is_ascii_digit()) {
                    cut.word.clear();
                    cut.begun = false;
                }
                cut.end_word();
                cut.written = true;
                while rest.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
            }
            '#' if !cut.begun => while rest.next_if(|c| *c != '\n').is_some() {},
            '$' | '*' | '?' => {
                cut.open();
                cut.computed = true;
            }
            c if c.is_whitespace() => cut.end_word(),
            c => {
                cut.open();
                cut.word.push(c);
            }
        }
    }
    cut.end_command();
    cut.commands
}

#[derive(Default)]
struct Cut {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: String,
    /// True within a word, which may be empty so far.
    begun: bool,
    /// True if the shell would compute some of the word.
    computed: bool,
    /// True if the word is a file that is written to.
    written: bool,
}

impl Cut {
    fn open(&mut self) {
        self.begun = true;
    }

    fn end_word(&mut self) {
        if !self.begun {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if !self.written {
            self.words.push(if self.computed { String::new() } else { word });
        }
        (self.begun, self.computed, self.written) = (false, false, false);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.written = false;
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<String> {
        named_files(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn b_20_every_argument_may_name_a_file_and_a_bare_program_does_not() {
        assert_eq!(of(&["work.sh"]), Vec::<String>::new());
        assert_eq!(of(&["./work.sh", "data.json"]), ["./work.sh", "data.json"]);
        assert_eq!(of(&["python3", "-u", "a.py"]), ["a.py"]);
        assert_eq!(of(&["tool", "--file=b.yaml"]), ["b.yaml"]);
    }

    #[test]
    fn b_20_within_a_shell_what_is_run_counts() {
        for (text, files) in [
            ("./a.sh && sh b.sh; cat c > ./d", &["./a.sh", "b.sh"][..]),
            ("X=1 ./a.sh 2>&1 | tee log", &["./a.sh"]),
            ("if test -e go; then . ./env; fi", &["./env"]),
            ("cd sub && ./a.sh", &["sub/./a.sh"]),
            ("sh -c \"sh 'b c.sh'\"", &["b c.sh"]),
            ("sh < run.sh", &["run.sh"]),
            ("touch begun; while [ ! -e go ]; do sleep 0.01; done", &[]),
            ("\"$HOME\"/x $(./y) `./z`", &["./y", "./z"]),
            ("# ./no\n./yes", &["./yes"]),
            ("echo './no'", &[]),
        ] {
            let found = run_by_shell(text);
            assert_eq!(found, files, "{text}");
        }
    }
}
