//! A repository brings along what looks like the state of a project: nothing of it is believed,
//! nothing of it runs, and every command says why.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::world::{ECHO, Said, World, copy, gone, lives, state_of, until, until_so};

/// An agent that shows that it ran, wherever it does.
const ATTACK: &str = r#"
[workflow]
name = "attack"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "touch \"$HOME/ran\"; exec sleep 98764"]
"#;

/// The commands that only look, and the one that would start something.
const COMMANDS: [&[&str]; 5] =
    [&["status"], &["top", "--json"], &["open", "--json"], &["doctor"], &["run", "x"]];

const TRACKED: &str = "is not believed: it came with the repository";

/// The state of a project with a run that is not finished, and with a token.
fn attackers_state() -> World {
    let world = World::workflow(ATTACK);
    world.run(&["token", "create", "mine", "--scope", "admin"]).ok();
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it runs", || world.home().join("ran").exists());
    world.run(&["down"]).ok();
    world
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let name = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
    let done = std::process::Command::new("git")
        .args(name)
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("git");
    assert!(done.status.success(), "{arguments:?}: {done:?}");
}

/// The world of somebody who has cloned a repository with these files in it.
fn cloned(plant: impl FnOnce(&Path)) -> World {
    let world = World::new();
    let origin = world.home().join("origin");
    fs::create_dir(&origin).expect("a folder");
    fs::write(origin.join("stafette.toml"), ATTACK).expect("written");
    git(&origin, &["init", "--quiet"]);
    plant(&origin);
    git(&origin, &["add", "--all", "--force"]);
    git(&origin, &["commit", "--quiet", "--message", "harmless"]);
    fs::remove_dir(world.project()).expect("empty");
    git(world.home(), &["clone", "--quiet", "origin", "project"]);
    world
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

/// Nothing of it has been believed, and nothing of it has run.
fn is_untouched(world: &World, shape: &str) {
    assert!(!world.home().join("ran").exists(), "{shape}: something ran");
    let store = world.state().join("store.db");
    if store.exists() {
        let runs = world.run(&["status", "--json"]);
        assert!(runs.code != 0 || runs.json() == json!([]), "{shape}: {runs:?}");
        let tokens = world.run(&["token", "list", "--json"]);
        assert!(tokens.code != 0 || tokens.json() == json!([]), "{shape}: {tokens:?}");
    }
}

fn said(said: &Said) -> String {
    format!("{}{}", said.out, said.err)
}

/// Every command says why, and does nothing.
fn is_refused(world: &World, shape: &str, why: &str) {
    for command in COMMANDS {
        let told = world.run(command);
        assert!(said(&told).contains(why), "{shape}: {command:?}: {told:?}");
        if command[0] == "run" {
            assert_ne!(told.code, 0, "{shape}: {told:?}");
        }
    }
    is_untouched(world, shape);
}

#[test]
fn b_20_a_cloned_repository_cannot_bring_state_along() {
    let attacker = attackers_state();
    let state = attacker.state();
    let one = |name: &'static str| {
        let state = state.clone();
        move |origin: &Path| {
            fs::create_dir_all(origin.join(".stafette")).expect("a folder");
            fs::copy(state.join(name), origin.join(".stafette").join(name)).expect("copied");
        }
    };
    let text = |name: &'static str, text: &'static str| {
        move |origin: &Path| write(origin.join(".stafette").join(name), text)
    };
    type Plant<'a> = Box<dyn Fn(&Path) + 'a>;
    let shapes: Vec<(&str, Plant<'_>)> = vec![
        ("everything", Box::new(|origin| copy(&state, &origin.join(".stafette")))),
        ("the store", Box::new(one("store.db"))),
        ("tokens", Box::new(one("tokens.json"))),
        ("browsers", Box::new(text("browsers.json", "[]"))),
        ("a database", Box::new(text("store.place", "postgres://evil/db\n"))),
        ("knowledge", Box::new(text("knowledge.db", "x"))),
        ("hooks", Box::new(text("hooks.json", "{\"cursor\": 0}"))),
        ("triggers", Box::new(text("triggers.json", "{}"))),
        ("trust", Box::new(text("trusted.json", "[\"0\"]"))),
        ("an owner", Box::new(text("project.json", "{}"))),
        ("turns", Box::new(text("turns/tokens.json", "{}"))),
        ("worktrees", Box::new(text("worktrees/worktrees/r/a/stafette.toml", ATTACK))),
        ("changes", Box::new(text("changes/c1.json", "{}"))),
        (
            "a link to a store",
            Box::new(|origin| {
                fs::create_dir(origin.join(".stafette")).expect("a folder");
                symlink(state.join("store.db"), origin.join(".stafette/store.db")).expect("a link");
            }),
        ),
    ];
    for (shape, plant) in shapes {
        let world = cloned(plant);
        is_refused(&world, shape, TRACKED);
        let adopted = world.run(&["state", "adopt", "--yes"]);
        assert_ne!(adopted.code, 0, "{shape}: {adopted:?}");
    }
}

#[test]
fn b_20_a_state_folder_that_leads_elsewhere_is_not_used() {
    let attacker = attackers_state();
    let shapes: [(&str, &str); 3] =
        [("a link", "../foreign"), ("dangling", "nowhere"), ("file", "")];
    for (shape, target) in shapes {
        let world = cloned(|origin| {
            let local = origin.join(".stafette");
            match target {
                "" => fs::write(local, "a file").expect("written"),
                target => symlink(target, local).expect("a link"),
            }
        });
        let foreign = world.home().join("foreign");
        copy(&attacker.state(), &foreign);
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).expect("a mode");
        let before = fs::read_dir(&foreign).expect("a folder").count();
        is_refused(&world, shape, ".stafette is not used");
        let mode = fs::metadata(&foreign).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{shape}: its mode is as it was");
        assert_eq!(fs::read_dir(&foreign).expect("a folder").count(), before, "{shape}");
    }
}

#[test]
fn b_20_a_lock_that_is_no_plain_file_is_not_used() {
    type Plant = fn(&Path, &Path);
    let shapes: [(&str, Plant); 4] = [
        ("a link", |lock, precious| symlink(precious, lock).expect("a link")),
        ("a second name", |lock, precious| fs::hard_link(precious, lock).expect("a name")),
        ("a folder", |lock, _| fs::create_dir(lock).expect("a folder")),
        ("a pipe", |lock, _| {
            let made = std::process::Command::new("mkfifo").arg(lock).status();
            assert!(made.expect("mkfifo").success());
        }),
    ];
    for (shape, plant) in shapes {
        let world = cloned(|_| {});
        let precious = world.home().join("precious");
        fs::write(&precious, "mine").expect("written");
        fs::create_dir(world.project().join(".stafette")).expect("a folder");
        plant(&world.project().join(".stafette/lock"), &precious);
        is_refused(&world, shape, "lock is not used");
        assert_eq!(fs::read_to_string(&precious).expect("it is there"), "mine", "{shape}");
    }
}

#[test]
fn b_20_a_home_that_is_a_repository_brings_no_state_along_either() {
    let attacker = attackers_state();
    let world = cloned(|origin| {
        let project = origin.parent().expect("a home").join("project");
        let state = state_of(origin, &project);
        copy(&attacker.state(), &state);
        fs::remove_file(state.join("project.json")).expect("it was there");
    });
    let home = world.project().display().to_string();
    for command in COMMANDS {
        let told = world.run_with(command, b"", &[("HOME", &home)]);
        assert!(said(&told).contains("git tracks it"), "{command:?}: {told:?}");
    }
    assert!(!world.project().join("ran").exists(), "something ran");
}

#[test]
fn b_20_what_a_lock_says_counts_only_while_it_is_held() {
    let attacker = World::workflow(ECHO);
    attacker.up(&[]).expect("a daemon");
    let socket = attacker.state().join("daemon.sock");
    let lock = json!({ "pid": 1, "socket": socket }).to_string();
    let world = cloned(|origin| write(origin.join(".stafette/lock"), &lock));
    let theirs = attacker.run(&["up", "--json"]).ok().json()["pid"].clone();
    let ours = world.run(&["up", "--json"]).ok().json()["pid"].clone();
    assert_ne!(ours, theirs);
    is_untouched(&world, "a lock");
}

#[test]
fn b_20_one_project_has_one_daemon_whatever_the_environment() {
    let world = World::workflow(ECHO);
    let elsewhere = world.home().join("elsewhere").display().to_string();
    let other = [("XDG_STATE_HOME", elsewhere.as_str())];
    // Trust is kept in the same folder.
    world.run_with(&["trust", "--yes"], b"", &other).ok();
    let pid = world.up(&other).expect("a daemon");
    world.run(&["run", "x"]).ok();
    assert_eq!(world.up(&[]), Some(pid), "it is found from here, too");
    assert_eq!(world.run_with(&["status", "--json"], b"", &other).json()[0]["request"], "x");
    let second = world.run(&["up", "--foreground"]);
    assert!(second.code == 1 && second.err.contains("already runs"), "{second:?}");
    assert!(lives(pid));
    world.run(&["down"]).ok();
    gone(pid);
}

#[test]
fn b_20_a_state_is_its_users_alone_whatever_the_umask() {
    let world = World::workflow(ECHO);
    let command = format!("umask 000; exec {} up", crate::world::program());
    let done = world.command("sh").args(["-c", &command]).output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let state = world.state();
    for folder in state.ancestors().take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!(mode(&world.project().join(".stafette")), 0o700);
    assert_eq!(world.read(".stafette/.gitignore"), "*\n");
    world.run(&["down"]).ok();
    let away = world.home().join("away");
    fs::rename(&state, &away).expect("moved");
    symlink(&away, &state).expect("a link");
    let told = world.run(&["status"]);
    assert!(told.code == 1 && told.err.contains("is not used"), "{told:?}");
}

#[test]
fn b_20_another_folder_at_the_same_path_does_not_get_the_state() {
    let world = World::workflow(ECHO);
    world.run(&["run", "--foreground", "before"]).ok();
    let kept = world.home().join("kept");
    fs::rename(world.project(), &kept).expect("moved");
    fs::create_dir(world.project()).expect("another folder");
    world.write("stafette.toml", ECHO);
    for command in COMMANDS {
        let told = world.run(command);
        assert!(said(&told).contains("is not of this folder"), "{command:?}: {told:?}");
        assert!(said(&told).contains("stafette state forget"), "{command:?}: {told:?}");
    }
    world.run(&["state", "forget", "--yes"]).ok();
    assert_eq!(world.run(&["status", "--json"]).ok().json(), json!([]), "it begins anew");
    world.run(&["down"]).ok();
    world.run(&["state", "forget", "--yes"]).ok();

    // The same project, restored from a backup: its user says so.
    fs::remove_dir_all(world.project()).expect("removed");
    fs::rename(&kept, world.project()).expect("moved back");
    let aside = fs::read_dir(world.state().parent().expect("a folder")).expect("a folder");
    let mut aside: Vec<PathBuf> = aside.map(|entry| entry.expect("an entry").path()).collect();
    aside.sort();
    fs::rename(&aside[0], world.state()).expect("put back");
    assert_eq!(world.run(&["status", "--json"]).ok().json()[0]["request"], "before");
    world.run(&["down"]).ok();
    let copied = world.home().join("copied");
    copy(&world.project(), &copied);
    fs::remove_dir_all(world.project()).expect("removed");
    fs::rename(&copied, world.project()).expect("restored");
    assert_eq!(world.run(&["status"]).code, 1, "it is another folder");
    world.run(&["state", "adopt", "--yes"]).ok();
    assert_eq!(world.run(&["status", "--json"]).ok().json()[0]["request"], "before");
}

/// Agents in worktrees: the first waits for a word, the second sees what the first has written.
const WORKTREES: &str = r#"
[workflow]
name = "two"
entry = "one"
worktrees = true
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "echo x > work.txt; touch \"$HOME/begun\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.01; done"]
"#;

/// A project whose state lies where older releases had it, with a run in the middle.
fn older() -> World {
    let world = World::new();
    world.write("stafette.toml", WORKTREES);
    git(&world.project(), &["init", "--quiet"]);
    git(&world.project(), &["add", "--all"]);
    git(&world.project(), &["commit", "--quiet", "--message", "first"]);
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it has begun", || world.home().join("begun").exists());
    world.run(&["down"]).ok();
    let local = world.project().join(".stafette");
    fs::remove_dir_all(&local).expect("removed");
    fs::rename(world.state(), &local).expect("moved");
    // What gives rights is not believed, whoever has put it there.
    for name in ["project.json", "trusted.json", "tokens.json"] {
        fs::write(local.join(name), "{\"planted\": true}").expect("planted");
    }
    world
}

#[test]
fn b_20_a_person_has_an_older_state_moved_with_its_worktrees() {
    let world = older();
    let told = world.run(&["status", "--json"]).ok();
    assert!(told.err.contains("`stafette state adopt` takes them over"), "{told:?}");
    assert_eq!(told.json(), json!([]), "nothing of it is read before");
    let by_agent = world.run_with(&["state", "adopt", "--yes"], b"", &[("STAFETTE_KEY", "k")]);
    assert!(by_agent.code == 1 && by_agent.err.contains("This is for a person"), "{by_agent:?}");
    let unasked = world.run(&["state", "adopt"]);
    assert_ne!(unasked.code, 0, "nobody has said yes: {unasked:?}");
    world.run(&["down"]).ok();
    world.run(&["state", "adopt", "--yes"]).ok();
    assert!(!world.project().join(".stafette/store.db").exists());
    fs::write(world.home().join("go"), "").expect("written");
    let told = world.run(&["up"]).ok();
    assert!(!told.err.contains("older state"), "{told:?}");
    let view = until("its end", || {
        let view = world.run(&["status", "--json"]).ok().json()[0].clone();
        (view["status"] == "succeeded").then_some(view)
    });
    let run = view["run"].as_str().expect("a run");
    let branch = format!("stafette/result/{}", &run[run.len() - 8..]);
    // Its work is left on a branch, in the moment after.
    let show = format!("{branch}:work.txt");
    let shown = || world.command("git").args(["show", &show]).output().expect("git");
    until_so("the branch", || shown().status.success());
}

#[test]
fn b_20_a_state_that_may_be_another_persons_is_not_adopted() {
    let refused = |world: &World, why: &str| {
        let told = world.run(&["state", "adopt", "--yes"]);
        assert!(told.code != 0 && told.err.contains(why), "{why}: {told:?}");
    };
    let world = older();
    git(&world.project(), &["add", "--force", ".stafette/store.db"]);
    refused(&world, "came with the repository");
    git(&world.project(), &["rm", "--quiet", "--cached", ".stafette/store.db"]);
    let link = world.project().join(".stafette/turns/link");
    symlink("/etc", &link).expect("a link");
    refused(&world, "turns/link is a link");
    fs::remove_file(link).expect("removed");
    world.run(&["run", "--foreground", "--detach", "anew"]);
    world.run(&["down"]);
    refused(&world, "has runs already");
}

#[test]
fn b_20_a_run_continues_only_with_what_was_trusted() {
    let world = World::workflow(&ATTACK.replace("98764", "98765"));
    world.run(&["run", "--detach", "x"]).ok();
    let ran = world.home().join("ran");
    until_so("it runs", || ran.exists());

    // The file changes, and is trusted as it is now: the run keeps what it began with.
    world.run(&["down"]).ok();
    fs::remove_file(&ran).expect("it was there");
    world.write("stafette.toml", ECHO);
    world.run(&["up"]).ok();
    until_so("it runs again", || ran.exists());

    // The state forgets what was trusted, as one does that comes from elsewhere.
    world.run(&["down"]).ok();
    fs::remove_file(&ran).expect("it was there");
    fs::remove_file(world.state().join("trusted.json")).expect("it was there");
    world.run(&["up"]).ok();
    let told = until("why", || {
        let told = world.run(&["status", "latest"]).ok();
        // The count is asked for before the run, which may be stopped in between.
        let counted = told.err.contains("1 run is stopped");
        (counted && told.out.contains("is not what was trusted here")).then_some(told)
    });
    assert!(told.out.contains("stopped"), "{told:?}");
    assert!(world.run(&["why"]).ok().out.contains("is not what was trusted here"));
    let forked = world.run(&["fork", "latest"]);
    assert!(said(&forked).contains("is not what was trusted here"), "{forked:?}");
    assert!(!ran.exists(), "nothing of it was started");

    // It can be put right, and then it goes on.
    world.write("stafette.toml", &ATTACK.replace("98764", "98765"));
    world.run(&["trust", "--yes"]).ok();
    world.run(&["up"]).ok();
    until_so("it runs once more", || ran.exists());
    world.run(&["cancel"]).ok();
}

/// A team that takes files in, and shows that it ran.
const FOLDER: &str = r#"
[workflow]
name = "files"
entry = "one"
[coordination]
[generations]
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "touch \"$HOME/ran\""]
"#;

#[test]
fn b_20_files_that_came_with_the_repository_start_no_paid_work() {
    let request = json!({ "request": "spend money" }).to_string();
    let context = json!({ "schemaVersion": 1, "userNotes": ["go on"] }).to_string();
    let world = cloned(|origin| {
        fs::write(origin.join("stafette.toml"), FOLDER).expect("written");
        write(origin.join(".claude/handoffs/pending/cloned.json"), &request);
        write(origin.join("data/state/orchestrator-context.json"), &context);
    });
    // Not of the repository, but there before anybody worked here: it came in an archive.
    world.write(".claude/handoffs/pending/older.json", &request);
    world.run(&["trust", "--yes"]).ok();
    world.run(&["up"]).ok();
    let rejected = |name: &str| {
        let name = format!(".claude/handoffs/rejected/{name}.reason.json");
        until(&name, || Some(world.read(&name)).filter(|text| !text.is_empty()))
    };
    assert!(rejected("older").contains("before this project was first used here"));
    let why = rejected("cloned");
    assert!(why.contains("before this project") || why.contains("came with the repository"));

    // A pull brings another.
    let origin = world.home().join("origin");
    write(origin.join(".claude/handoffs/pending/pulled.json"), &request);
    git(&origin, &["add", "--all", "--force"]);
    git(&origin, &["commit", "--quiet", "--message", "more"]);
    git(&world.project(), &["checkout", "--quiet", "--", ".claude"]);
    git(&world.project(), &["pull", "--quiet", "--ff-only"]);
    assert!(rejected("pulled").contains("came with the repository"));
    assert_eq!(world.run(&["status", "--json"]).ok().json(), json!([]), "no run has begun");
    assert!(!world.home().join("ran").exists());

    // What somebody drops there is taken.
    world.write(".claude/handoffs/pending/mine.json", &request);
    until_so("a run", || world.home().join("ran").exists());
}

/// Makes a folder look like a repository whose settings name a program for everything, and whose index
/// needs objects that are not there.
fn disguise(folder: &Path, program: &str) {
    let sparse = tempfile::tempdir().expect("a folder");
    let sparse = sparse.path();
    for name in ["aa/f", "bb/f"] {
        write(sparse.join(name), name);
    }
    git(sparse, &["init", "--quiet"]);
    git(sparse, &["add", "."]);
    git(sparse, &["commit", "--quiet", "--message", "x"]);
    git(sparse, &["sparse-checkout", "set", "--cone", "--sparse-index", "aa"]);
    for name in ["objects/.keep", "refs/.keep", "info/.keep"] {
        write(folder.join(name), "");
    }
    for name in ["index", "HEAD", "info/sparse-checkout"] {
        fs::copy(sparse.join(".git").join(name), folder.join(name)).expect("copied");
    }
    let config = format!(
        "[core]\nrepositoryformatversion = 1\nbare = false\nworktree = .\nsparseCheckout = true\n\
         sparseCheckoutCone = true\nfsmonitor = \"{program}\"\n[index]\nsparse = true\n\
         [extensions]\npartialClone = o\n[protocol \"file\"]\nallow = always\n\
         [remote \"o\"]\nurl = /tmp\npromisor = true\nuploadpack = \"{program}\"\n\
         [filter \"x\"]\nclean = \"{program}\"\n"
    );
    write(folder.join("config"), &config);
}

#[test]
fn b_20_a_project_that_looks_like_a_repository_has_git_start_nothing() {
    let world = World::new();
    let program = format!("touch '{}'; false", world.home().join("ran").display());
    let (origin, clone) = (world.home().join("origin"), world.home().join("clone/inner"));
    write(origin.join("inner/stafette.toml"), ATTACK);
    write(origin.join("inner/.gitattributes"), "* filter=x\n");
    write(origin.join("inner/.stafette/store.db"), "x");
    disguise(&origin.join("inner"), &program);
    git(&origin, &["init", "--quiet"]);
    git(&origin, &["add", "--all", "--force"]);
    git(&origin, &["commit", "--quiet", "--message", "harmless"]);
    git(world.home(), &["clone", "--quiet", "origin", "clone"]);
    let more: [&[&str]; 4] =
        [&["trust", "--list"], &["check"], &["lock", "check", "a"], &["state", "adopt", "--yes"]];
    for command in COMMANDS.iter().chain(&more) {
        let mut process = world.command(crate::world::program());
        let told = process.args(*command).current_dir(&clone).output().expect("it runs");
        assert!(!world.home().join("ran").exists(), "{command:?}: {told:?}");
        if command[0] == "status" {
            assert!(String::from_utf8_lossy(&told.stderr).contains(TRACKED), "{told:?}");
        }
    }
    let mut down = world.command(crate::world::program());
    down.arg("down").current_dir(&clone).output().expect("it runs");
}

#[test]
fn b_20_a_pull_request_of_a_folder_that_looks_like_a_repository_runs_no_hooks() {
    let world = World::new();
    let ran = world.home().join("ran");
    let (origin, clone) = (world.home().join("origin"), world.home().join("clone/inner"));
    let agent = "[workflow]\nname = \"x\"\nentry = \"a\"\n[agents.a]\nrunner = \"external\"\n";
    write(origin.join("inner/stafette.toml"), agent);
    git(&origin, &["init", "--quiet", "--bare", "made"]);
    for name in ["HEAD", "config"] {
        fs::copy(origin.join("made").join(name), origin.join("inner").join(name)).expect("copied");
    }
    fs::remove_dir_all(origin.join("made")).expect("removed");
    git(&origin, &["init", "--quiet"]);
    git(&origin, &["add", "--all"]);
    git(&origin, &["commit", "--quiet", "--message", "harmless"]);
    // As a repository of its own it has a commit to check out, a remote, and hooks.
    let objects = origin.join("inner/objects");
    copy(&origin.join(".git/objects"), &objects);
    copy(&origin.join(".git/refs"), &origin.join("inner/refs"));
    write(origin.join("inner/refs/.keep"), "");
    let head = fs::read_to_string(origin.join(".git/HEAD")).expect("a head");
    write(origin.join("inner/HEAD"), &head);
    let hook = origin.join("inner/hooks/post-checkout");
    write(hook.clone(), &format!("#!/bin/sh\ntouch '{}'\n", ran.display()));
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
    git(&origin.join("inner"), &["remote", "add", "origin", &origin.to_string_lossy()]);
    git(&origin, &["add", "--all", "--force"]);
    git(&origin, &["commit", "--quiet", "--message", "still harmless"]);
    git(world.home(), &["clone", "--quiet", "origin", "clone"]);
    let stafette = |arguments: &[&str]| {
        let mut process = world.command(crate::world::program());
        process.args(arguments).env("PATH", "/usr/bin:/bin").current_dir(&clone);
        for who in ["AUTHOR", "COMMITTER"] {
            process.env(format!("GIT_{who}_NAME"), "ada").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        process.output().expect("it runs")
    };
    let edit = json!({ "file": "a.txt", "action": "create", "content": "a" });
    write(clone.join("change.json"), &json!({ "reason": "x", "changes": [edit] }).to_string());
    assert!(stafette(&["trust", "--yes"]).status.success());
    let proposed = stafette(&["changes", "propose", "change.json"]);
    assert!(proposed.status.success(), "{proposed:?}");
    let said = stafette(&["pr", "c1"]);
    assert!(said.status.success() && !ran.exists(), "{said:?}");
    git(&origin, &["show", "--quiet", "stafette/c1:inner/a.txt"]);
    stafette(&["down"]);
}

#[test]
fn b_20_a_coordination_folder_that_looks_like_a_repository_brings_no_paid_work() {
    let request = json!({ "request": "spend money" }).to_string();
    let trap = tempfile::tempdir().expect("a folder");
    let ran = trap.path().join("ran");
    let program = format!("touch '{}'; false", ran.display());
    let world = cloned(|origin| {
        fs::write(origin.join("stafette.toml"), FOLDER).expect("written");
        disguise(&origin.join(".claude/handoffs/pending"), &program);
    });
    world.run(&["trust", "--yes"]).ok();
    world.run(&["up"]).ok();
    let origin = world.home().join("origin");
    let pulled = ".claude/handoffs/pending/pulled.json";
    write(origin.join(pulled), &request);
    git(&origin, &["add", "--force", pulled]);
    git(&origin, &["commit", "--quiet", "--message", "more"]);
    git(&world.project(), &["fetch", "--quiet"]);
    git(&world.project(), &["checkout", "--quiet", "origin/main", "--", pulled]);
    let name = ".claude/handoffs/rejected/pulled.reason.json";
    let why = until(name, || Some(world.read(name)).filter(|text| !text.is_empty()));
    assert!(why.contains("came with the repository"), "{why}");
    assert!(!ran.exists() && !world.home().join("ran").exists());
}

#[test]
fn b_20_a_worktree_of_an_agent_belongs_to_its_project() {
    let world = older();
    world.run(&["state", "adopt", "--yes"]).ok();
    let trees = state_of(world.home(), &world.project()).join("worktrees/worktrees");
    let run = fs::read_dir(&trees).expect("runs").next().expect("a run").expect("a run").path();
    let tree = run.join("one");
    assert!(tree.join("work.txt").exists());
    fs::remove_file(tree.join("stafette.toml")).expect("it was there");
    let mut command = world.command(crate::world::program());
    let told = command.args(["lock", "check", "work.txt", "--json"]).current_dir(&tree).output();
    let told = told.expect("it runs");
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.status.success() && text.contains("\"work.txt\""), "{told:?}");
}
