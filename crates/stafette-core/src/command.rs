//! What a command names: the one reader of commands. Trust, and the gates of changes, both ask here.
//!
//! It reads more than a shell would run: every folder that a command changes to counts for every
//! path after it, and a text with spaces may be another command. What exists is found by the caller.

pub mod environment;
mod launchers;
mod words;

use std::collections::BTreeSet;

use launchers::{STARTING_SCRIPTS, SUBCOMMANDS, is_interpreter, module, runs_found, split_string};
use words::{
    ALONE, EXECUTING, FOLDERS, KEYWORDS, LOOKING, OURSELVES, PLAIN_SHELLS, READERS, RUNNERS,
    SETTING, SHELLS, STARTING,
};

/// The depth to which commands within commands are read.
const DEPTH: usize = 4;

/// The number of commands within quotes that are read.
const MOST_QUOTED: usize = 64;

/// The number of folders that are followed.
const MOST_FOLDERS: usize = 16;

/// What a command starts and names.
#[derive(Debug, Default)]
pub struct Mentions {
    /// The words that may name files, each once.
    pub files: Vec<Mention>,
    /// The programs that are started, without their folders.
    pub programs: BTreeSet<String>,
    /// True if a shell computes the name of a file that is run.
    pub runs_computed: bool,
    /// True if the folder that the command works in is computed.
    is_adrift: bool,
    /// True while the arguments are names that the program looks up.
    looks_up: bool,
    /// True while a word is the script of a shell.
    is_script: bool,
}

/// A word of a command that may name a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The path, as the command spells it, after the folder that the command works in.
    pub path: String,
    /// What the command does with it.
    pub role: Role,
    /// True if it stands in the command itself, and not in the text of a shell.
    pub outer: bool,
    /// True if a variable stands in front of it, so that only its end is known.
    pub computed: bool,
    /// True if it can also be the name of a folder, or of a file without its ending.
    pub looked_up: bool,
    /// True if it is the script of a shell, unless its first line names another program.
    pub is_script: bool,
}

/// What a command does with a file that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is a program, or an argument of a program that runs files.
    Runs,
    /// It is an argument of a program that may do anything with it.
    Takes,
    /// It is only looked at, made or removed.
    Looks,
}

/// Reads a command: a program and its arguments, among which can be the text of a shell.
pub fn mentions(command: &[String]) -> Mentions {
    let mut found = Mentions::default();
    let words: Vec<Word> = command.iter().map(|text| Word::plain(text)).collect();
    found.read(&words, &mut vec![String::new()], None, DEPTH);
    let mut seen = std::collections::HashSet::new();
    found
        .files
        .retain(|file| seen.insert((file.path.clone(), file.role == Role::Looks, file.is_script)));
    found
}

/// Reads what a file runs in its turn; `None` if that is no text of a shell. `is_script` says that a
/// shell runs it where its first line names no program.
pub fn script(content: &[u8], is_script: bool) -> Option<Mentions> {
    let text = String::from_utf8_lossy(content);
    let is_one = match text.strip_prefix("#!").and_then(|text| text.lines().next()) {
        Some(line) => line.split_whitespace().any(is_shell),
        None => is_script && !content.contains(&0),
    };
    is_one.then(|| {
        let mut found = Mentions::default();
        found.text(&text, &[String::new()], DEPTH);
        found
    })
}

/// Lists the files whose contents are part of a command: what it runs, and what it is given itself.
/// Within the text of a shell, data that programs make and read is not.
pub fn contents(command: &[String]) -> Vec<String> {
    let files = mentions(command).files.into_iter();
    let counts = |file: &Mention| !file.computed && (file.outer || file.role == Role::Runs);
    let mut paths: Vec<String> = files.filter(counts).map(|file| file.path).collect();
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

/// Lists the names in a command that the program looks up on its own: folders, and files without
/// their ending.
pub fn lookups(command: &[String]) -> Vec<String> {
    let files = mentions(command).files.into_iter();
    files.filter(|file| file.looked_up && !file.computed).map(|file| file.path).collect()
}

impl Mentions {
    /// Reads one simple command. `piped` is set within the text of a shell: true where what it looks
    /// at is run at the end of a pipe.
    fn read(
        &mut self,
        words: &[Word],
        folders: &mut Vec<String>,
        piped: Option<bool>,
        depth: usize,
    ) {
        let outer = piped.is_none();
        (self.looks_up, self.is_script) = (false, false);
        let leads = |word: &&Word| (!outer && word.is_keyword()) || word.assignment().is_some();
        let (lead, words) = words.split_at(words.iter().take_while(leads).count());
        for (variable, value) in lead.iter().filter_map(Word::assignment) {
            match STARTING.contains(&variable) {
                true => self.started(value, folders, outer, depth),
                false => self.add(value, folders, Role::Takes, outer, false),
            }
        }
        // A bare program is found elsewhere then.
        self.runs_computed |= lead.iter().chain(words).any(Word::leads_path_astray);
        let Some((program, arguments)) = words.split_first() else { return };
        let name = program.text.rsplit('/').next().unwrap_or_default().to_owned();
        // A bare name is looked for on the path, not in the project.
        if program.text.contains('/') {
            self.is_script = true;
            self.add(&program.text, folders, Role::Runs, outer, program.computed);
        }
        let role = match name.as_str() {
            "cd" | "pushd" => {
                self.is_adrift |= arguments.iter().any(|word| word.computed);
                return go_to(arguments, folders);
            }
            name if !outer && SETTING.contains(&name) => {
                return self.set(name == "alias", arguments, folders, depth);
            }
            "find" | "fd" if arguments.iter().any(|word| EXECUTING.contains(&&*word.text)) => {
                Role::Runs
            }
            name if is_runner(name) || piped == Some(true) => Role::Runs,
            name if LOOKING.contains(&name) => Role::Looks,
            _ => Role::Takes,
        };
        self.programs.insert(name.clone());
        self.runs_computed |= runs_found(&name, arguments);
        self.runs_computed |=
            program.computed || (role == Role::Runs && arguments.iter().any(|word| word.computed));
        let is_relative = program.text.contains('/') && !program.text.starts_with('/');
        let runs_argument = is_runner(&name) && !arguments.is_empty();
        self.runs_computed |= self.is_adrift && (is_relative || runs_argument);
        let mut folders = folders.clone();
        let mut before = "";
        let is_python = name.starts_with("python");
        let starts_interpreter = arguments.iter().any(|word| is_interpreter(&word.text));
        let mut looks_up = is_interpreter(&name);
        let has_subcommands = matches!(&*name, "bun" | "deno");
        // Its own folder has other names there.
        let is_hidden = |word: &Word| word.text.starts_with("/proc/");
        self.runs_computed |=
            is_hidden(program) || role == Role::Runs && arguments.iter().any(is_hidden);
        // What is printed, looked for or handed over is no command.
        let is_data = role == Role::Looks
            || name == "stafette" && arguments.first().is_some_and(|word| word.text == "emit");
        let mut no_more_options = false;
        let mut is_script = is_shell(&name) || piped == Some(true);
        for word in arguments {
            (self.looks_up, self.is_script) = (looks_up, is_script);
            // What follows an option can be its value.
            is_script &= word.text.starts_with('-') || before.starts_with('-');
            is_script |= is_shell(&word.text);
            if no_more_options && role == Role::Runs {
                // A name of a file can begin like an option.
                self.add(&word.text, &folders, role, outer, word.computed);
            }
            no_more_options |= word.text == "--";
            let set = word.assignment().filter(|(variable, _)| STARTING.contains(variable));
            if let Some((_, value)) = set.filter(|_| role == Role::Runs) {
                self.started(value, &folders, outer, depth);
            }
            if let Some(text) = split_string(&name, &word.text).filter(|_| depth > 0) {
                self.text(text, &folders, depth - 1);
            }
            let before = std::mem::replace(&mut before, &word.text);
            if FOLDERS.contains(&before) {
                go_to(std::slice::from_ref(word), &mut folders);
                continue;
            }
            // Among other letters, it may mean something else.
            if is_letters(before) && before.ends_with('C') {
                go_to(std::slice::from_ref(word), &mut folders);
            }
            if let Some(folder) = folder_in(&word.text) {
                go_to(&[Word { text: folder.to_owned(), computed: word.computed }], &mut folders);
            }
            // What follows the name of a script is no code. One program can start another.
            if looks_up || starts_interpreter {
                self.code(&word.text, is_python, &folders, outer);
            }
            if let Some(module) = module(&name, before, &word.text) {
                let path = module.replace('.', "/");
                self.add(&format!("{path}.py"), &folders, Role::Runs, outer, false);
                self.add(&format!("{path}/__main__.py"), &folders, Role::Runs, outer, false);
                let package = path.split('/').next().unwrap_or_default();
                self.add(package, &folders, Role::Runs, outer, false);
            }
            let subcommand = SUBCOMMANDS.iter().position(|it| has_subcommands && *it == word.text);
            if let Some(place) = subcommand.filter(|_| looks_up) {
                self.looks_up = false;
                self.argument(word, &folders, role, outer);
                // After an option, it can also be the value of that.
                looks_up = place < STARTING_SCRIPTS || before.starts_with('-');
                continue;
            }
            // What follows the name of a script is the script's.
            let ends = !before.starts_with('-') || is_python && before.ends_with(['m', 'c']);
            looks_up &= word.text.starts_with('-') || !ends;
            let is_text = role == Role::Runs && is_text_option(before);
            let may_be = word.text.contains(|c: char| c.is_whitespace() || ";&|".contains(c));
            if !is_text {
                // Settings of git name programs that it starts.
                let is_setting = name == "git" && before == "-c";
                let role = if is_setting { Role::Runs } else { role };
                self.argument(word, &folders, role, outer);
            }
            if let Some((_, text)) = word.text.split_once("=!").filter(|_| depth > 0) {
                self.text(text, &folders, depth - 1);
            }
            // A folder is run by a file in it.
            if name.starts_with("python") && !word.text.starts_with('-') {
                let file = within(&word.text, "__main__.py");
                self.add(&file, &folders, role, outer, word.computed);
            }
            if depth > 0 && (is_text || may_be && !is_data) {
                self.text(&word.text, &folders, depth - 1);
            }
        }
    }

    /// Reads variables that a shell sets for the commands after it, and names for commands.
    fn set(&mut self, runs: bool, arguments: &[Word], folders: &[String], depth: usize) {
        for word in arguments {
            let Some((variable, value)) = word.assignment() else { continue };
            let runs = runs || STARTING.contains(&variable);
            self.runs_computed |= runs && word.computed;
            match runs {
                true => self.started(value, folders, false, depth),
                false => self.add(value, folders, Role::Takes, false, word.computed),
            }
        }
    }

    /// Reads a value that is a file to run, a command, or options of a program.
    fn started(&mut self, value: &str, folders: &[String], outer: bool, depth: usize) {
        self.add(value, folders, Role::Runs, outer, false);
        for part in value.split_whitespace() {
            self.argument(&Word::plain(part), folders, Role::Runs, outer);
        }
        if depth > 0 {
            self.text(value, folders, depth - 1);
        }
    }

    /// Takes a word that is, or in which stand, the names of files.
    fn argument(&mut self, word: &Word, folders: &[String], role: Role, outer: bool) {
        let option = word.text.strip_prefix('-');
        if option.is_none() {
            self.add(&word.text, folders, role, outer, word.computed);
        }
        // A value can follow the letter of an option at once.
        let value = option.filter(|option| !option.starts_with('-') && !option.contains('='));
        let value = value.and_then(|option| option.get(1..));
        let parts = word.text.split(['=', ':', ',', '@', '!']).filter(|part| *part != word.text);
        for part in parts.chain(value).filter(|part| !part.starts_with('-')) {
            self.add(part, folders, role, outer, word.computed);
        }
    }

    /// Takes what can be the name of a file in code that is given to an interpreter: it can load every
    /// one of them, also without the ending.
    fn code(&mut self, text: &str, is_python: bool, folders: &[String], outer: bool) {
        if !text.contains(['\'', '"', '`', '(', ' ', ';']) {
            return;
        }
        let was = std::mem::replace(&mut self.looks_up, true);
        let is_part = |c: char| c.is_alphanumeric() || "._/@+-".contains(c);
        let words = text.split(|c| !is_part(c)).filter(|word| word.contains(char::is_alphanumeric));
        for word in words.take(MOST_QUOTED) {
            self.add(word, folders, Role::Runs, outer, false);
            if is_python {
                self.add(
                    &format!("{}.py", word.replace('.', "/")),
                    folders,
                    Role::Runs,
                    outer,
                    false,
                );
            }
        }
        self.looks_up = was;
    }

    fn add(&mut self, path: &str, folders: &[String], role: Role, outer: bool, computed: bool) {
        if !path.is_empty() {
            let looked_up = self.looks_up && role == Role::Runs;
            let is_here = path.split('/').all(|name| matches!(name, "" | "."));
            self.runs_computed |= looked_up && is_here && !path.starts_with('/');
            let is_script = self.is_script && role == Role::Runs;
            let paths = folders.iter().map(|folder| within(folder, path));
            self.files.extend(paths.map(|path| Mention {
                path,
                role,
                outer,
                computed,
                looked_up,
                is_script,
            }));
        }
    }

    /// Reads the text of a shell.
    fn text(&mut self, text: &str, folders: &[String], depth: usize) {
        let mut folders = folders.to_vec();
        let commands = commands(text);
        // What is looked at can be run at the end of a pipe.
        let runs = |simple: &Simple| {
            simple.piped && simple.words.first().is_some_and(|word| is_runner(&word.text))
        };
        let is_run = commands.iter().any(runs);
        // What else is piped into a shell is made on the way.
        let reads = |simple: &Simple| simple.piped && simple.reads_program();
        let is_made = |simple: &Simple| simple.piped && !reads(simple) && !simple.is_cat();
        self.runs_computed |= commands.iter().any(reads) && commands.iter().any(is_made);
        for simple in &commands {
            self.read(&simple.words, &mut folders, Some(simple.piped && is_run), depth);
        }
    }
}

/// True if a command may run more than the files that it names, such as what they source, import or
/// build: anything but programs that only look, also in the text of a shell.
#[must_use]
pub fn runs_more(command: &[String]) -> bool {
    let found = mentions(command);
    let is_known =
        |name: &String| [&LOOKING[..], &PLAIN_SHELLS, &ALONE].concat().contains(&&**name);
    found.runs_computed
        || !found.programs.iter().all(is_known)
        || found.files.iter().any(|file| file.role == Role::Runs)
}

fn is_runner(program: &str) -> bool {
    RUNNERS.contains(&program.rsplit('/').next().unwrap_or_default())
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Adds the folder that the first argument leads to, from each that was there before.
fn go_to(arguments: &[Word], folders: &mut Vec<String>) {
    let Some(to) = arguments.iter().find(|word| !word.text.starts_with('-')) else { return };
    for at in 0..folders.len() {
        let folder = within(&folders[at], &to.text);
        if folders.len() < MOST_FOLDERS && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
}

/// True for `-c`, also among other letters, as in `-lc`.
fn is_text_option(word: &str) -> bool {
    is_letters(word) && word.ends_with('c')
}

/// True for a word of short options.
fn is_letters(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The folder in an option that says where a command works: `--chdir=sub`, `-Csub`.
fn folder_in(word: &str) -> Option<&str> {
    let long = word.split_once('=').filter(|(option, _)| FOLDERS.contains(option));
    let short = || word.strip_prefix("-C").filter(|folder| !folder.is_empty());
    long.map(|(_, folder)| folder).or_else(short)
}

fn within(folder: &str, path: &str) -> String {
    match folder.is_empty() || path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{folder}/{path}"),
    }
}

/// A word of a command, without its quotes and variables.
#[derive(Clone, Debug, Default)]
struct Word {
    text: String,
    computed: bool,
}

impl Word {
    fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), computed: false }
    }

    fn is_keyword(&self) -> bool {
        KEYWORDS.contains(&self.text.as_str())
    }

    /// The variable and its value, if the word sets one.
    fn assignment(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once('=')?;
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (!name.is_empty() && name.bytes().all(is_letter)).then_some((name, value))
    }

    /// True if it has programs looked for in folders that may be in the project, or puts another
    /// program in the place of Stafette's.
    fn leads_path_astray(&self) -> bool {
        if self.text.contains(OURSELVES) {
            return true;
        }
        let Some(("PATH", value)) = self.assignment() else { return false };
        self.computed || value.split(':').any(|folder| !folder.starts_with('/'))
    }
}

/// A command in a shell's text.
#[derive(Debug, Default)]
struct Simple {
    words: Vec<Word>,
    /// The files that it reads from, wherever they stand.
    reads: Vec<Word>,
    piped: bool,
}

impl Simple {
    /// True if it runs what it reads.
    fn reads_program(&self) -> bool {
        let Some((program, arguments)) = self.words.split_first() else { return false };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        READERS.contains(&name) && arguments.iter().all(|word| word.text.starts_with('-'))
    }

    fn is_cat(&self) -> bool {
        self.words.first().is_some_and(|word| word.text == "cat")
    }
}

/// Cuts a shell's text into its commands, and those into words. What is written to is left out.
fn commands(text: &str) -> Vec<Simple> {
    let mut cut = Cut::default();
    cut.read(text);
    let mut at = 0;
    while let Some(quoted) = cut.quoted.get(at).cloned().filter(|_| at < MOST_QUOTED) {
        cut.read(&quoted);
        at += 1;
    }
    cut.commands
}

/// Takes a command out of quotes, up to its end.
fn substituted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut open = 1_usize;
    let is_in = |c: &char| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open > 0
    };
    rest.take_while(is_in).collect()
}
#[derive(Default)]
struct Cut {
    commands: Vec<Simple>,
    simple: Simple,
    word: Word,
    /// True within a word, which may be empty so far.
    begun: bool,
    /// True if the word is a file that is written to.
    written: bool,
    /// True if the word is a file that is read from.
    read: bool,
    /// The commands that stand within quotes.
    quoted: Vec<String>,
}

impl Cut {
    fn read(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    self.begun = true;
                    rest.by_ref().take_while(|c| *c != '\'').for_each(|c| self.word.text.push(c));
                }
                '"' => {
                    self.begun = true;
                    while let Some(c) = rest.next().filter(|c| *c != '"') {
                        match c {
                            '\\' => self.word.text.extend(rest.next()),
                            '$' if rest.next_if_eq(&'(').is_some() => {
                                self.word.computed = true;
                                self.quoted.push(substituted(&mut rest));
                            }
                            '$' => self.variable(&mut rest),
                            '`' => {
                                self.word.computed = true;
                                self.quoted.push(rest.by_ref().take_while(|c| *c != '`').collect());
                            }
                            c => self.word.text.push(c),
                        }
                    }
                }
                '\\' => {
                    self.begun = true;
                    self.word.text.extend(rest.next().filter(|c| *c != '\n'));
                }
                '|' if rest.next_if_eq(&'|').is_none() => {
                    self.simple.piped = true;
                    self.end_command();
                    self.simple.piped = true;
                }
                ';' | '&' | '|' | '(' | ')' | '\n' => self.end_command(),
                '`' => {
                    self.begun = true;
                    self.word.computed = true;
                    self.quoted.push(rest.by_ref().take_while(|c| *c != '`').collect());
                }
                '<' => {
                    self.end_stream();
                    if rest.peek() == Some(&'(') {
                        // The output of a command, as a file.
                        self.simple.words.push(Word { text: String::new(), computed: true });
                    }
                    self.read = true;
                    while rest.next_if(|c| matches!(c, '<' | '&')).is_some() {}
                }
                '>' => {
                    self.end_stream();
                    self.written = true;
                    while rest.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
                }
                '#' if !self.begun => while rest.next_if(|c| *c != '\n').is_some() {},
                '$' => {
                    self.begun = true;
                    self.variable(&mut rest);
                }
                '*' | '?' => {
                    self.begun = true;
                    self.word.computed = true;
                }
                // Alone they are words of the shell, or of the program.
                '{' if rest.peek().is_some_and(|c| !c.is_whitespace() && *c != '}') => {
                    self.begun = true;
                    self.word.computed = true;
                }
                '[' if self.begun && self.word.text != "[" => self.word.computed = true,
                '~' if !self.begun && rest.next_if(|c| matches!(c, '+' | '-')).is_some() => {
                    self.begun = true;
                    self.word.computed = true;
                }
                c if c.is_whitespace() => self.end_word(),
                c => {
                    self.begun = true;
                    self.word.text.push(c);
                }
            }
        }
        self.end_command();
    }

    /// Leaves a variable out. The folder that the command works in is known, and Stafette's own program;
    /// all others are not.
    fn variable(&mut self, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        let braced = rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = rest.next_if(|c| match braced {
            true => *c != '}',
            false => c.is_ascii_alphanumeric() || *c == '_',
        }) {
            name.push(c);
        }
        if braced {
            rest.next();
            // What stands in for an empty variable may be a command's output.
            for (_, after) in
                name.match_indices("$(").map(|(at, open)| name.split_at(at + open.len()))
            {
                self.quoted.push(substituted(&mut after.chars().peekable()));
            }
            let ticked = name.split('`').skip(1).step_by(2);
            self.quoted.extend(ticked.map(str::to_owned));
        }
        match name.as_str() {
            "PWD" if self.word.text.is_empty() => self.word.text.push('.'),
            OURSELVES if self.word.text.is_empty() => self.word.text.push_str("stafette"),
            _ => self.word.computed = true,
        }
    }

    /// Ends the word in front of a redirection. The number of a stream is none.
    fn end_stream(&mut self) {
        if !self.word.computed && self.word.text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.word = Word::default();
            self.begun = false;
        }
        self.end_word();
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        match self.begun {
            true if self.written => {}
            true if self.read => self.simple.reads.push(word),
            true => self.simple.words.push(word),
            false => return,
        }
        (self.written, self.read, self.begun) = (false, false, false);
    }

    fn end_command(&mut self) {
        self.end_word();
        (self.written, self.read) = (false, false);
        let mut simple = std::mem::take(&mut self.simple);
        if !simple.words.is_empty() && simple.words.iter().all(Word::is_keyword) {
            // What it reads from is no program.
            simple.words.push(Word::plain(":"));
        }
        simple.words.append(&mut simple.reads);
        if !simple.words.is_empty() {
            self.commands.push(simple);
        }
    }
}

#[cfg(test)]
mod tests;
