//! The words by which commands are read: programs, options, and what a shell knows by itself.

/// The programs that run the files among their arguments, or the command after them.
pub(super) const RUNNERS: [&str; 50] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "python", "python3", "node",
    "deno", "bun", "ruby", "perl", "php", "lua", "java", "tsx", "ts-node", "uv", "npx", "make",
    "just", "env", "exec", "nohup", "nice", "sudo", "command", "timeout", "time", "xargs",
    "setsid", ".", "source", "eval", "trap", "builtin", "chroot", "coproc", "doas", "enable",
    "flock", "hash", "ionice", "mapfile", "parallel", "stdbuf", "watch",
];

/// Options after which programs that look for files run a command.
pub(super) const EXECUTING: [&str; 7] =
    ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"];

/// Words of a shell that set variables, or names for commands.
pub(super) const SETTING: [&str; 6] =
    ["alias", "declare", "export", "local", "readonly", "typeset"];

/// Programs that run what they read where no file is named to them.
pub(super) const READERS: [&str; 15] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "python", "python3", "node", "ruby", "perl",
    "php", "lua", "deno",
];

/// Programs that read a script of a shell.
pub(super) const SHELLS: [&str; 9] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", ".", "source"];

/// Variables that name a file which programs run, or hold a command or options.
pub(super) const STARTING: [&str; 21] = [
    "BASH_ENV",
    "BROWSER",
    "EDITOR",
    "ENV",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PAGER",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SSH_ASKPASS",
    "VISUAL",
];

/// Programs that only look at the files that are named to them, or make and remove them.
pub(super) const LOOKING: [&str; 18] = [
    "[", "[[", "cat", "echo", "egrep", "fgrep", "grep", "head", "ls", "mkdir", "printf", "rg",
    "rm", "rmdir", "tail", "test", "touch", "wc",
];

/// Shells whose text is read as it is meant.
pub(super) const PLAIN_SHELLS: [&str; 3] = ["bash", "dash", "sh"];

/// Programs and words of a shell that run nothing.
pub(super) const ALONE: [&str; 10] =
    [":", "cd", "done", "exit", "false", "fi", "set", "sleep", "true", "}"];

/// The variable in which an agent finds Stafette's own program.
pub(super) const OURSELVES: &str = "STAFETTE_PROGRAM";

/// The words in front of a command that are not its program.
pub(super) const KEYWORDS: [&str; 12] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "env"];

/// Options after which a folder follows that the command works in.
pub(super) const FOLDERS: [&str; 7] =
    ["-C", "--chdir", "--cwd", "--dir", "--directory", "--prefix", "--wd"];
