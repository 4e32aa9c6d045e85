use super::*;

fn of(words: &[&str]) -> Vec<String> {
    contents(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

#[test]
fn b_20_every_argument_may_name_a_file_and_a_bare_program_does_not() {
    assert_eq!(of(&["work.sh"]), Vec::<String>::new());
    assert_eq!(of(&["./work.sh", "data.json"]), ["./work.sh", "data.json"]);
    assert_eq!(of(&["node", "--trace", "a.js"]), ["a.js"]);
    assert_eq!(of(&["tool", "--file=b.yaml"]), ["b.yaml"]);
    let module = of(&["python3", "-m", "tools.check"]);
    assert!(module.contains(&"tools/check.py".to_owned()), "{module:?}");
}

#[test]
fn b_20_within_a_shell_what_is_run_counts() {
    for (text, files) in [
        ("./a.sh && sh b.sh; cat c > ./d", &["./a.sh", "b.sh"][..]),
        ("X=1 ./a.sh 2>&1 | tee log", &["./a.sh"]),
        ("if test -e go; then . ./env; fi", &["./env"]),
        ("cd sub && ./a.sh", &["./a.sh", "sub/./a.sh"]),
        ("(cd a; ./x); (cd b && ./y)", &["./x", "a/./x", "./y", "a/./y", "b/./y", "a/b/./y"]),
        ("make -C sub/dir check", &["check", "sub/dir/check"]),
        ("sh -c \"sh 'b c.sh'\"", &["b c.sh"]),
        ("sh < run.sh", &["run.sh"]),
        ("touch begun; while [ ! -e go ]; do sleep 0.01; done", &[]),
        ("\"$HOME\"/x $(./y) `./z`", &["./y", "./z"]),
        ("exec \"$PWD/x\" && ${PWD}/y", &["./x", "./y"]),
        ("exec 3< ./no; </dev/null ./yes", &["./yes"]),
        ("# ./no\n./yes", &["./yes"]),
        ("echo './no'", &[]),
    ] {
        let found = of(&["sh", "-c", text]);
        assert_eq!(found, files, "{text}");
    }
}

#[test]
fn b_20_a_shell_runs_files_by_more_than_their_names() {
    for text in [
        "find src -exec ./a.sh ';'",
        "echo \"${Y:-$(./a.sh)}\"",
        "echo ${Y:-`./a.sh`}",
        "builtin source ./a.sh",
        "coproc ./a.sh; wait",
        "export BASH_ENV=./a.sh; bash -c true",
        "alias q=./a.sh; q",
        "hash -p ./a.sh ls; ls",
    ] {
        let found = of(&["sh", "-c", text]);
        assert!(found.contains(&"./a.sh".to_owned()), "{text}: {found:?}");
    }
    for text in ["find src -name a.sh", "export NAME=./a.sh"] {
        assert_eq!(of(&["sh", "-c", text]), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn b_20_files_are_found_however_they_are_named() {
    for words in [
        &["env", "-C", "s", "./a.sh"][..],
        &["make", "-fs/a.sh"],
        &["env", "BASH_ENV=s/a.sh", "bash", "-c", "true"],
        &["git", "-c", "alias.x=!s/a.sh", "x"],
        &["sh", "-c", "cat s/a.sh | sh"],
        &["sh", "-c", "sh \"$PWD\"/s/a.sh"],
        &["sh", "-c", "echo \"$(s/a.sh)\""],
        &["sh", "-c", "echo \"`s/a.sh`\""],
        &["sh", "-c", "echo \"$(echo \"$(s/a.sh)\")\""],
        &["sh", "-c", "trap 's/a.sh' EXIT"],
        &["bash", "-c", "pushd s; ./a.sh"],
        &["sh", "-c", "BASH_ENV=s/a.sh bash -c :"],
        &["git", "-c", "alias.x=!sh s/a.sh", "x"],
        &["sh", "-c", "git -c core.fsmonitor=s/a.sh status"],
        &["sh", "-c", "</dev/null s/a.sh"],
        &["sh", "-c", "0<x 2>y s/a.sh"],
        &["sh", "-c", "s/a.sh <<END\nx\nEND"],
        &["env", "-Ssh s/a.sh"],
        &["env", "-vSsh s/a.sh"],
        &["env", "--split-string=sh s/a.sh"],
        &["env", "--split=sh s/a.sh"],
        &["sh", "-c", "`s/a.sh`"],
        &["sh", "-c", "NODE_OPTIONS='--require ./s/a.sh' node x.js"],
        &["sh", "-c", "export RUBYOPT='-w -r./s/a.sh'; ruby x.rb"],
        &["env", "PERL5OPT=-w -Ms/a.sh", "perl", "x.pl"],
        &["sh", "-c", "EDITOR=s/a.sh crontab -e"],
        &["sh", "-c", "GIT_EDITOR='sh s/a.sh' git commit"],
        &["env", "VISUAL=sh s/a.sh", "x"],
        &["sh", "-c", "PYTHONSTARTUP=s/a.sh python3 -i"],
    ] {
        let found = of(words);
        let is_it = |path: &String| path.replace("./", "") == "s/a.sh";
        assert!(found.iter().any(is_it), "{words:?}: {found:?}");
    }
    assert!(of(&["sh", "--", "-x.sh"]).contains(&"-x.sh".to_owned()));
    for words in [["python3", "-Bm", "mod"].as_slice(), &["python3", "-ummod"]] {
        assert!(of(words).contains(&"mod.py".to_owned()), "{words:?}");
    }
    assert!(of(&["python3", "s"]).contains(&"s/__main__.py".to_owned()));
    for text in [
        "F=s/a.sh; sh $F",
        "sh s/*.sh",
        "s/{a,b}.sh",
        "$(echo s/a.sh)",
        "./r[u]n.sh",
        "sh ~+/run.sh",
        "sh {run,x}.sh",
        "{sh,run.sh}",
        ". <(cat run.sh)",
        "cd $X/sub && ./prog",
        "PATH=.:$PATH run.sh",
        "PATH=$PWD/sub:$PATH; prog",
        "echo c2ggcnVuLnNo|base64 -d|sh",
        "`cat list.txt`",
        "`pwd`/x.sh",
        "sh `cat list.txt`",
        "find . -name x.sh -exec sh {} ';'",
        "find . -name x.sh -exec {} ';'",
        "find . -execdir env sh {} +",
        "fd x.sh -x sh",
        "find . -name x.sh | xargs sh",
        "ls | xargs -n1 python3",
        "ls | parallel bash",
    ] {
        let words = ["sh", "-c", text].map(str::to_owned);
        assert!(mentions(&words).runs_computed, "{text}");
    }
    assert!(mentions(&["env", "PATH=sub", "prog"].map(str::to_owned)).runs_computed);
    for text in [
        "make test",
        "cargo test && ./a.sh",
        "cat a | wc -l",
        "{ ./a.sh; }",
        "if [ -e a ]; then ./a.sh; fi",
        "[[ -e a ]] && ./a.sh",
        "PATH=/usr/bin:/bin ./a.sh",
        "cat a.sh | sh",
        "grep x a | python3 b.py",
        "cd \"$HOME\" && cargo test",
        "find . -name x -exec rm {} +",
        "find . -name x -exec ./a.sh {} +",
        "find . -name x | xargs rm",
        "find . -name x | xargs ./a.sh",
        "echo `date`",
        "x=`date`; echo $x",
        "wc -l < a.txt",
        "exec 3< a.txt; cat <&3",
        "./a.sh < /dev/null",
    ] {
        let words = ["sh", "-c", text].map(str::to_owned);
        assert!(!mentions(&words).runs_computed, "{text}");
    }
}

#[test]
fn b_20_names_that_an_interpreter_looks_up_are_known() {
    let of = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (words, name) in [
        (&["node", "q"][..], "q"),
        (&["node", "--trace", "lib"], "lib"),
        (&["node", "-r", "./hook", "q"], "q"),
        (&["python3", "-m", "pkg.mod", "x"], "pkg"),
        (&["ruby", "-r./b", "-e1"], "./b"),
        (&["perl", "-Mlib=.", "-Ms", "-e1"], "s"),
        (&["sh", "-c", "cd sub && node q"], "sub/q"),
    ] {
        let found = lookups(&of(words));
        assert!(found.contains(&name.to_owned()), "{words:?}: {found:?}");
    }
    for words in [&["python3", "a.py", "src"][..], &["python3", "-m", "pytest", "src"]] {
        assert!(!lookups(&of(words)).contains(&"src".to_owned()), "{words:?}");
    }
    // A folder of tests changes with every task, and is none that these run from by its name.
    for words in [
        &["bun", "test"][..],
        &["bun", "test", "src"],
        &["deno", "test", "--allow-read", "test"],
        &["sh", "-c", "cd sub && bun run build && deno task test"],
    ] {
        let found = lookups(&of(words));
        let is_test =
            |path: &String| ["test", "src", "run", "task"].iter().any(|it| path.ends_with(it));
        assert!(!found.iter().any(is_test), "{words:?}: {found:?}");
    }
    for words in [&["bun", "q"][..], &["bun", "run", "q"], &["deno", "run", "-A", "q"]] {
        assert!(lookups(&of(words)).contains(&"q".to_owned()), "{words:?}");
    }
    for words in [
        &["node", "."][..],
        &["java", "-cp", ".", "Main"],
        &["perl", "-Mlib=.", "-Ms", "-e1"],
        &["sh", "/proc/self/cwd/x.sh"],
    ] {
        assert!(mentions(&of(words)).runs_computed, "{words:?}");
    }
}

#[test]
fn s4_07_what_is_looked_at_in_a_pipe_may_be_run() {
    let words = |text: &str| ["sh", "-c", text].map(str::to_owned);
    let role = |text: &str| {
        let found = mentions(&words(text)).files;
        found.iter().find(|file| file.path == "a.txt").map(|file| file.role)
    };
    assert_eq!(role("grep -q x a.txt || exit 1"), Some(Role::Looks));
    assert_eq!(role("cat a.txt | sh"), Some(Role::Runs));
    assert_eq!(role("cat a.txt | wc"), Some(Role::Looks));
    assert_eq!(role("echo x > a.txt"), None);
}

#[test]
fn b_20_every_path_in_code_for_an_interpreter_counts() {
    for (command, file) in [
        (&["node", "-e", "require('./x.js')"][..], "./x.js"),
        (&["node", "-e", "import('./x.mjs')"], "./x.mjs"),
        (&["node", "--input-type=module", "-e", "import './x.mjs'"], "./x.mjs"),
        (&["node", "--eval=require(\"./x.js\")"], "./x.js"),
        (&["node", "-p", "require(`./lib/x.js`)"], "./lib/x.js"),
        (&["perl", "-e", "require './x.pl'"], "./x.pl"),
        (&["perl", "-we", "do q(./x.pl)"], "./x.pl"),
        (&["ruby", "-e", "load 'x.rb'"], "x.rb"),
        (&["php", "-r", "include 'lib/x.php';"], "lib/x.php"),
        (&["python3", "-c", "import tools.check"], "tools/check.py"),
        (&["python3", "-c", "exec(open('x.txt').read())"], "x.txt"),
        (&["sh", "-c", "node -e \"require('./x.js')\""], "./x.js"),
        (&["env", "node", "-e", "require('./x.js')"], "./x.js"),
        (&["timeout", "5", "/usr/bin/node", "-e", "require('./x.js')"], "./x.js"),
    ] {
        let found = of(command);
        assert!(found.contains(&file.to_owned()), "{command:?}: {found:?}");
    }
    let words = ["node", "-e", "require('./x')"].map(str::to_owned);
    assert!(lookups(&words).contains(&"./x".to_owned()), "also without its ending");
}

#[test]
fn b_20_a_script_is_read_for_what_it_runs_further() {
    let further = |text: &str, is_script| -> Option<Vec<String>> {
        let files = script(text.as_bytes(), is_script)?.files.into_iter();
        Some(files.filter(|file| file.role == Role::Runs).map(|file| file.path).collect())
    };
    for text in [". ./y", "source ./y", "sh ./y", "./y", "#!/bin/sh\ntrue && ./y\n", "x=$(./y)"] {
        assert_eq!(further(text, true), Some(vec!["./y".to_owned()]), "{text}");
    }
    for text in ["cat ./y", "test -e ./y || exit 1", "# ./y", "cargo test"] {
        assert_eq!(further(text, true), Some(Vec::new()), "{text}");
    }
    assert_eq!(further("#!/usr/bin/env bash\n./y", false), Some(vec!["./y".to_owned()]));
    for text in ["./y", "#!/usr/bin/env python3\n./y"] {
        assert_eq!(further(text, false), None, "{text}");
    }
    assert_eq!(further("\x7fELF\0./y", true), None);
    let computed = |text: &[u8]| script(text, true).is_some_and(|found| found.runs_computed);
    assert!(computed(b"\"$TOOL\" x"));
    assert!(!computed(b"stafette emit RESULT '{\"status\": \"resolved\"}'"));
    // Every agent is told to speak by it.
    assert!(!computed(b"\"$STAFETTE_PROGRAM\" emit RESULT x"));
    for text in ["STAFETTE_PROGRAM=./x; \"$STAFETTE_PROGRAM\"", "read STAFETTE_PROGRAM < ./x"] {
        assert!(computed(text.as_bytes()), "{text}");
    }

    let is_script = |words: &[&str], path: &str| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        mentions(&words).files.iter().any(|file| file.path == path && file.is_script)
    };
    for words in [
        &["./x.sh"][..],
        &["sh", "./x.sh", "./data"],
        &["timeout", "5", "sh", "-e", "./x.sh"],
        &["bash", "-o", "pipefail", "./x.sh"],
        &["sh", "-c", "cd . && . ./x.sh"],
        &["sh", "-c", "sh < ./x.sh"],
        &["sh", "-c", "cat ./x.sh | sh"],
    ] {
        assert!(is_script(words, "./x.sh"), "{words:?}");
        assert!(!is_script(words, "./data"), "{words:?}");
    }
    for words in [&["node", "./x.sh"][..], &["cat", "./x.sh"], &["tool", "./x.sh"]] {
        assert!(!is_script(words, "./x.sh"), "{words:?}");
    }
}

#[test]
fn b_20_a_command_may_run_files_that_no_word_names() {
    let runs_more = |words: &[&str]| {
        super::runs_more(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    };
    for command in [
        &["python3", "tools/report.py"][..],
        &["node", "-e", "require('./x.js')"],
        &["sh", "-c", "cd x && perl check.pl"],
        &["env", "python3", "x.py"],
        &["sh", "run.sh"],
        &["./check.sh"],
        &["make", "test"],
        &["npm", "test"],
        &["cargo", "test"],
        &["run-parts", "checks"],
        &["awk", "BEGIN { system(\"./x.sh\") }"],
        &["sed", "1e ./x.sh", "file"],
        &["split", "--filter=./x.sh", "file"],
        &["find", "sub", "-execdir", "./y.sh", ";"],
        &["git", "-c", "core.hooksPath=hk", "commit"],
        &["tar", "--to-command=./x.sh", "-xf", "x.tar"],
        &["sh", "-c", ". ./lib.sh"],
        &["sh", "-c", "test -f x && $RUN"],
    ] {
        assert!(runs_more(command), "{command:?}");
    }
    for command in [
        &["sh", "-c", "grep x y"][..],
        &["sh", "-c", "! grep -q x || { echo 'not this one' >&2; exit 2; }"],
        &["sh", "-c", "if test -f x; then exit 2; fi"],
        &["test", "-f", "x"],
        &["true"],
    ] {
        assert!(!runs_more(command), "{command:?}");
    }
}

#[test]
fn b_20_a_folder_in_an_option_is_followed() {
    for command in [
        &["env", "--chdir=sub", "./y.sh"][..],
        &["env", "--chdir", "sub", "./y.sh"],
        &["env", "-Csub", "./y.sh"],
        &["env", "-iC", "sub", "./y.sh"],
        &["unshare", "--wd=sub", "./y.sh"],
        &["make", "--directory=sub", "-f", "./y.sh"],
    ] {
        let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let found = super::contents(&words);
        assert!(found.contains(&"sub/./y.sh".to_owned()), "{command:?}: {found:?}");
    }
}
