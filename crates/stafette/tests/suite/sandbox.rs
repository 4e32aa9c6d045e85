//! Agents in a sandbox, from the command line to the kernel.

use std::fs;
use std::process::Command;

use crate::parts;
use crate::world::{World, program, until_so};

/// Tries everything that an agent must not do, one word for each thing that it could.
const TRIES: &str = r#"
    cat > /dev/null
    could() { name=$1; shift; if "$@" 2>/dev/null; then echo "could $name"; else echo "not $name"; fi; }
    could read-ssh cat "$HOME/.ssh/id_ed25519"
    could read-aws cat "$HOME/.aws/credentials"
    could read-gnupg ls "$HOME/.gnupg/private-keys-v1.d"
    could write-home sh -c 'echo x > "$HOME/planted"'
    could write-hook sh -c 'echo x > .git/hooks/pre-commit'
    could write-git-config sh -c 'echo x >> .git/config'
    could write-claude sh -c 'echo x > .claude/settings.json'
    could write-stafette sh -c 'echo x > .stafette/planted'
    could read-state sh -c 'cat "$HOME"/.local/state/stafette/projects/*/store.db'
    could write-state sh -c 'cd "$HOME"/.local/state/stafette/projects/* && echo x > planted'
    could write-workflow sh -c 'echo x >> stafette.toml'
    could write-work sh -c 'echo x > work.txt'
    could write-temp sh -c 'echo x > "$TMPDIR/x"'
"#;

fn world(runner: &str, mode: &str, script: &str) -> World {
    let world = World::new();
    let path = world.project();
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(&path).status();
        assert!(done.expect("git").success());
    };
    git(&["init", "--quiet"]);
    for file in [".ssh/id_ed25519", ".aws/credentials", ".gnupg/private-keys-v1.d/key"] {
        let file = world.home().join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, "secret").expect("written");
    }
    world.write(".claude/settings.json", "{}");
    world.write("agent.sh", script);
    world.write(
        "stafette.toml",
        &format!(
            r#"
[workflow]
name = "one"
entry = "a"
[agents.a]
runner = "{runner}"
result = "exit"
sandbox = "{mode}"
command = ["sh", "agent.sh"]
[retries]
max = 1
"#
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

/// Whether this system can hold a whole policy: what it cannot is told, and not hidden.
pub(crate) fn alerts(world: &World) -> Vec<String> {
    let log = world.run(&["log", "--json"]).ok().lines();
    let told = log.iter().filter(|event| event["code"] == "SANDBOX_INCOMPLETE");
    told.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn b_08_an_agent_in_its_sandbox_reaches_no_keys_hooks_or_settings_and_still_hands_on() {
    for runner in ["exec", "pty"] {
        let end = match runner {
            "exec" => "",
            _ => "\nprintf done > tried.done\n",
        };
        // A terminal's input has no end, so its agent reads lines.
        let tries = match runner {
            "pty" => TRIES.replace(
                "cat > /dev/null",
                "echo hi; while read -r line; do case \"$line\" in *'done twice.') break;; esac; done",
            ),
            _ => TRIES.to_owned(),
        };
        let (tries, emit) = (tries, format!("{} emit RESULT told", program()));
        let script = format!("({tries}) > tried.txt{end}\n{emit} || echo no-emit >> tried.txt\n");
        let script = match runner {
            "pty" => script.replace("echo hi;", "echo hi >&2;"),
            _ => script,
        };
        let world = world(runner, "auto", &script);
        world.run(&["run", "x"]).ok();
        let tried = world.read("tried.txt");
        let whole = parts::is_whole(&alerts(&world));
        for line in ["could write-work", "could write-temp"] {
            assert!(tried.contains(line), "{runner}: {line} in\n{tried}");
        }
        assert!(!tried.contains("no-emit"), "{runner}: {tried}");
        let log = world.run(&["log", "--json"]).ok().out;
        assert!(log.contains("turn_told"), "{runner}: it told by its own channel: {log}");
        let held = |word: &str| tried.contains(&format!("not {word}"));
        for word in [
            "read-ssh",
            "read-aws",
            "read-gnupg",
            "write-hook",
            "write-git-config",
            "write-claude",
            "write-stafette",
            "read-state",
            "write-state",
            "write-workflow",
            "write-home",
        ] {
            // What the system cannot hold, it says.
            assert!(held(word) || !whole, "{runner}: {word} in\n{tried}");
        }
        assert_eq!(whole, held("write-home") && held("write-hook"), "{tried}");
    }
}

#[test]
fn b_08_an_agent_in_its_sandbox_commits_in_its_worktree() {
    let script = "cat >/dev/null; echo x > work.txt; git add work.txt; \
                  git -c user.name=a -c user.email=a@b commit -qm 'a: work' || echo no > failed";
    let world = world("exec", "auto", script);
    let workflow = world.read("stafette.toml").replace("entry =", "worktrees = true\nentry =");
    world.write("stafette.toml", &workflow);
    world.run(&["trust", "--yes"]).ok();
    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let done =
            Command::new("git").args(name).args(arguments).current_dir(world.project()).output();
        String::from_utf8(done.expect("git").stdout).expect("UTF-8")
    };
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    let run = view["run"].as_str().expect("a run");
    let branch = format!("stafette/result/{}", &run[run.len() - 8..]);
    assert_eq!(git(&["log", "--format=%s", &branch]), "a: work\nfirst\n", "{view}");
}

/// Another agent, with which the first is in a loop: then the daemon looks at the work after a turn.
const LOOP: &str = r#"
[agents.b]
runner = "exec"
result = "exit"
command = ["true"]
[[routes]]
from = "a"
to = "orchestrator"
[[routes]]
from = "a"
to = "b"
[[routes]]
from = "b"
to = "a"
[[loops]]
name = "l"
between = ["a", "b"]
max_rounds = 2
"#;

/// Puts other settings in the place of the repository's, which would have our git start a program.
const SWAP: &str = r#"
    cat > /dev/null
    mv .git g2 && cp -r g2 .git
    printf '[filter "x"]\n clean = touch "%s/sprung"\n' "$HOME" > settings
    cat settings >> .git/config
    mv settings .git/config
    echo '* filter=x' > .gitattributes
    echo evil > agent.sh
    mv agent.sh other.sh
    mv .vscode code
    echo evil > .vscode/tasks.json
    echo done > work.txt
"#;

#[test]
fn b_08_an_agent_in_the_project_itself_replaces_nothing_that_steers_others() {
    let world = world("exec", "auto", SWAP);
    world.write(".vscode/tasks.json", "{}");
    let workflow = world.read("stafette.toml");
    world.write("stafette.toml", &format!("{workflow}{LOOP}"));
    world.run(&["trust", "--yes"]).ok();
    let before = world.read(".git/config");
    world.run(&["run", "x"]).ok();
    assert_eq!(world.read("work.txt"), "done\n");
    assert!(!world.home().join("sprung").exists(), "our git obeys nothing that an agent wrote");
    if parts::is_whole(&alerts(&world)) {
        assert_eq!(world.read(".git/config"), before);
        assert_eq!(world.read("agent.sh"), SWAP);
        assert_eq!(world.read(".vscode/tasks.json"), "{}");
    }
}

/// Points the worktree to settings of the agent's own.
const REDIRECT: &str = r#"
    cat > /dev/null
    own=$(sed 's/gitdir: //' .git)
    common=$(dirname "$(dirname "$own")")
    mkdir -p evil/objects/info evil/refs
    cp "$common/HEAD" evil/HEAD
    cp -r "$common/refs/." evil/refs/
    echo "$common/objects" > evil/objects/info/alternates
    printf '[core]\n repositoryformatversion = 0\n[filter "x"]\n clean = touch "%s/sprung"\n' "$HOME" > evil/config
    echo '* filter=x' > .gitattributes
    echo "$PWD/evil" > "$own/commondir"
    echo "$PWD/evil/.git" > "$own/gitdir"
    cp evil/config "$own/config.worktree"
    echo done > work.txt
"#;

#[test]
fn b_08_an_agent_in_its_worktree_leads_our_git_nowhere_and_leaves_the_users_whole() {
    let world = world("exec", "auto", REDIRECT);
    let workflow = world.read("stafette.toml").replace("entry =", "worktrees = true\nentry =");
    world.write("stafette.toml", &format!("{workflow}{LOOP}"));
    world.run(&["trust", "--yes"]).ok();
    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let done =
            Command::new("git").args(name).args(arguments).current_dir(world.project()).output();
        let done = done.expect("git");
        assert!(done.status.success() && done.stderr.is_empty(), "{arguments:?}: {done:?}");
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    git(&["config", "extensions.worktreeConfig", "true"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    let run = view["run"].as_str().expect("a run");
    let branch = format!("stafette/result/{}", &run[run.len() - 8..]);
    assert_eq!(git(&["show", &format!("{branch}:work.txt")]), "done\n", "{view}");
    assert!(!world.home().join("sprung").exists(), "our git obeys nothing that an agent wrote");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    assert!(git(&["log", "--all", "--topo-order", "--format=%s"]).ends_with("first\n"));
}

/// Puts another content under the name of a committed file, and removes what else there is.
const POISON: &str = r#"
    cat > /dev/null
    own=$(sed 's/gitdir: //' .git)
    common=$(dirname "$(dirname "$own")")
    path() { echo "$1" | sed 's,^\(..\),\1/,'; }
    name=$(path "$(git rev-parse HEAD:agent.sh)")
    other=$(path "$(echo poison | git hash-object -w --stdin)")
    for objects in "$common/objects" "$own/lent/shared"; do
        mkdir -p "$objects/$(dirname "$name")"
        cp -f "$common/objects/$other" "$objects/$name"
        rm -f "$objects"/pack/* "$objects"/*/*[0-9a-f]
    done
    echo x > work.txt; git add work.txt
    git -c user.name=a -c user.email=a@b commit -qm 'a: work' || echo no > failed
"#;

#[test]
fn b_08_an_agent_in_its_worktree_changes_no_object_of_the_repository() {
    let world = world("exec", "auto", POISON);
    let workflow = world.read("stafette.toml").replace("entry =", "worktrees = true\nentry =");
    world.write("stafette.toml", &workflow);
    world.run(&["trust", "--yes"]).ok();
    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let done =
            Command::new("git").args(name).args(arguments).current_dir(world.project()).output();
        done.expect("git")
    };
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let ran = world.run(&["run", "--foreground", "x", "--json"]);
    if !parts::is_whole(&alerts(&world)) {
        return;
    }
    let view = ran.ok().json();
    let run = view["run"].as_str().expect("a run");
    let branch = format!("stafette/result/{}", &run[run.len() - 8..]);
    let fine = git(&["fsck", "--strict"]);
    assert!(fine.status.success(), "{fine:?}");
    let script = git(&["show", "HEAD:agent.sh"]).stdout;
    assert_eq!(String::from_utf8(script).expect("UTF-8"), POISON);
    let work = git(&["show", &format!("{branch}:work.txt")]).stdout;
    assert_eq!(String::from_utf8(work).expect("UTF-8"), "x\n", "its own work is there: {view}");
}

#[test]
fn b_20_a_pipe_that_an_agent_leaves_for_git_stops_neither_the_next_run_nor_the_daemons_end() {
    let script = "cat > /dev/null; g=$(git rev-parse --git-dir); rm -f $g/index; mkfifo $g/index; \
                  echo x > work.txt";
    let world = world("exec", "auto", script);
    let workflow = world.read("stafette.toml");
    world.write("stafette.toml", &workflow.replace("entry =", "worktrees = true\nentry ="));
    world.run(&["trust", "--yes"]).ok();
    for _ in 0..2 {
        world.run(&["run", "x"]).ok();
    }
    world.run(&["down"]).ok();
}

#[test]
fn b_20_a_pipe_in_the_place_of_gits_files_is_named_where_a_change_is_applied() {
    let script = "cat > /dev/null; rm -f .gitattributes; mkfifo .gitattributes; \
        $STAFETTE_PROGRAM emit CHANGE '{\"reason\": \"Say hello\", \"changes\": \
        [{\"file\": \"hello.txt\", \"action\": \"create\", \"content\": \"Hello\\n\"}]}'";
    let world = world("exec", "auto", script);
    let name = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"];
    assert!(world.command("git").args(name).status().expect("git").success());
    world.run(&["run", "x"]).ok();
    let said = world.run(&["apply", "c1", "--yes"]);
    assert!(said.out.contains(".gitattributes, which is a pipe"), "{said:?}");
    assert_eq!(world.read("hello.txt"), "Hello\n", "the change itself is applied");
    fs::remove_file(world.project().join(".gitattributes")).expect("removed");
    world.run(&["down"]).ok();
}

#[test]
fn b_08_a_strict_sandbox_runs_all_or_nothing() {
    let world = world("exec", "strict", "cat >/dev/null; echo x > ran.txt");
    let said = world.run(&["run", "x"]);
    let refused = (said.code != 0).then(|| said.out.clone());
    match parts::is_whole(refused.as_slice()) {
        true => {
            assert_eq!((world.read("ran.txt").as_str(), alerts(&world)), ("x\n", Vec::new()));
        }
        false => {
            assert_eq!(said.code, 3, "{said:?}");
            assert!(said.out.contains("the sandbox of a is strict"), "{said:?}");
            assert!(said.out.contains("sandbox = \"auto\""), "{said:?}");
            assert_eq!(world.read("ran.txt"), "");
        }
    }
}

#[test]
fn b_08_a_script_has_its_interpreter_wherever_that_is_installed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = world("exec", "auto", "");
    let home = world.home();
    let (bin, tool) = (home.join("bin"), home.join("tools/node-24"));
    for folder in [&bin, &tool.join("bin"), &tool.join("lib"), &home.join("tools/other")] {
        fs::create_dir_all(folder).expect("a folder");
    }
    fs::copy("/bin/sh", tool.join("bin/my-node")).expect("an interpreter");
    symlink(tool.join("bin/my-node"), bin.join("my-node")).expect("a link");
    for file in ["tools/node-24/lib/words", "tools/other/words"] {
        fs::write(home.join(file), "words").expect("written");
    }
    let script = "#!/usr/bin/env my-node\ncat > /dev/null\n\
                  cat \"$HOME/tools/node-24/lib/words\" > found.txt\n\
                  cat \"$HOME/tools/other/words\" > other.txt 2>/dev/null\ntrue\n";
    fs::write(bin.join("my-agent"), script).expect("written");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bin.join("my-agent"), mode).expect("a program");
    let workflow = world.read("stafette.toml").replace("\"sh\", \"agent.sh\"", "\"my-agent\"");
    world.write("stafette.toml", &workflow);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let env = [("PATH", path.as_str())];
    world.run_with(&["trust", "--yes"], b"", &env).ok();
    world.run_with(&["run", "x"], b"", &env).ok();
    assert_eq!(world.read("found.txt"), "words");
    if alerts(&world).is_empty() {
        assert_eq!(world.read("other.txt"), "", "and nothing beside it");
    }
}

#[test]
fn b_08_doctor_says_what_the_system_offers() {
    let world = World::new();
    let said = world.run(&["doctor", "--json"]).json();
    let findings = said["findings"].as_array().expect("findings");
    let sandbox = findings.iter().find(|finding| finding["name"] == "sandbox").expect("a word");
    let text = sandbox["said"].as_str().expect("a text");
    for part in ["files", "signals", "system calls", "bubblewrap"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Leaves a process behind that has nothing to do with its agent any more and calls the next daemon.
const OUTLIVES: &str = r#"
    cat > /dev/null
    [ -e begun ] && exit
    socket="${STAFETTE_SOCKET%agents.sock}daemon.sock"
    echo 'echo $$ > begun
        while :; do
            curl -s -o /dev/null --unix-socket "$1" http://localhost/v1/tokens && echo reached > said
            sleep 0.01
        done' > calls.sh
    (env -i PATH="$PATH" setsid sh calls.sh "$socket" < /dev/null > /dev/null 2>&1 &)
    exec sleep 1000
"#;

#[test]
fn b_21_nothing_of_a_sandboxed_agent_outlives_a_daemon_that_was_killed() {
    // What is missing is told only when the agent has ended.
    if !parts::offers_whole() {
        return;
    }
    let world = world("exec", "auto", OUTLIVES);
    let daemon = world.up(&[]).expect("a daemon");
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it has left a process", || !world.read("begun").is_empty());
    let killed = Command::new("kill").args(["-KILL", &daemon.to_string()]).status();
    assert!(killed.expect("kill").success());
    until_so("nothing works in the project", || !works_in(&world));
    world.up(&[]).expect("the next daemon");
    world.run(&["resume"]).ok();
    assert_eq!(world.read("said"), "", "nobody called");
}

/// True if a process with the agent's leftover as its script runs.
fn works_in(world: &World) -> bool {
    let project = fs::canonicalize(world.project()).expect("a project");
    let processes = fs::read_dir("/proc").expect("the table of processes").flatten();
    let is_leftover = |process: std::path::PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let is_script = line.split(|byte| *byte == 0).any(|word| word == b"calls.sh");
        is_script && fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == project)
    };
    processes.map(|entry| entry.path()).any(is_leftover)
}

#[test]
fn b_21_an_agent_that_did_not_start_leaves_no_temporary_folder() {
    let world = world("exec", "auto", "");
    let workflow = world.read("stafette.toml");
    world.write(
        "stafette.toml",
        &workflow.replace(r#"["sh", "agent.sh"]"#, r#"["no-such-program"]"#),
    );
    world.run(&["trust", "--yes"]).ok();
    assert_eq!(world.run(&["run", "x"]).code, 3);
    let left = fs::read_dir(world.home().join(".cache/stafette/tmp")).into_iter().flatten();
    assert_eq!(left.count(), 0);
}
