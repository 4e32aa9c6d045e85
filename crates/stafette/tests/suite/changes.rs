//! Changes from the command line: proposed, shown, allowed, applied, taken back, undone.

use std::process::Command;

use serde_json::{Value, json};
use stafette_testkit::disk;

use crate::world::{World, program};

const ECHO: &str = r#"
[workflow]
name = "echo"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "true"]
[changes]
validate = ["sh", "-c", "! grep -r bad src"]
timeout = "2m"
"#;

fn world() -> World {
    let world = World::workflow(ECHO);
    world.write("src/a.txt", "one\ntwo\n");
    world.write("src/b.txt", "b\n");
    world
}

fn propose(world: &World, edits: &Value) -> String {
    let document = json!({ "codeChanges": edits, "reason": "as asked" }).to_string();
    let said = world.run_with(&["changes", "propose", "-", "--json"], document.as_bytes(), &[]);
    said.ok().json()["id"].as_str().expect("a name").to_owned()
}

#[test]
fn s4_06_a_change_is_proposed_shown_applied_and_undone() {
    let world = world();
    let edits = json!([
        { "file": "src/a.txt", "action": "modify", "content": "one\n2\n" },
        { "file": "src/new/c.txt", "action": "create", "content": "c\n" },
    ]);
    let id = propose(&world, &edits);
    let said = world.run(&["changes"]).ok();
    assert!(said.out.contains("c1") && said.out.contains("2 files"), "{said:?}");
    let said = world.run(&["diff"]).ok();
    assert!(said.out.contains("@@ -1,2 +1,2 @@\n one\n-two\n+2\n"), "{said:?}");
    assert!(said.out.contains("+++ b/src/new/c.txt"), "{said:?}");
    let said = world.run(&["diff", &id, "--stat"]).ok();
    assert!(said.out.contains("2 files, +2 -1"), "{said:?}");
    let said = world.run(&["apply", &id]).ok();
    assert!(said.out.contains("c1 applied and validated"), "{said:?}");
    assert_eq!(world.read("src/a.txt"), "one\n2\n");
    let said = world.run(&["undo", &id]).ok();
    assert!(said.out.contains("c1 undone"), "{said:?}");
    assert_eq!(world.read("src/a.txt"), "one\ntwo\n");
    assert!(!world.project().join("src/new").exists());
}

#[test]
fn s4_06_what_the_projects_command_refuses_is_taken_back_with_exit_code_5() {
    let world = world();
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "bad\n" }]);
    let id = propose(&world, &edit);
    let good = json!([{ "file": "src/b.txt", "action": "modify", "content": "good\n" }]);
    propose(&world, &good);
    let said = world.run(&["apply", &id]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains("c1 was taken back") && said.out.contains("src/a.txt:bad"));
    assert_eq!(world.read("src/a.txt"), "one\ntwo\n");
    let list = world.run(&["changes", "--json"]).ok().json();
    assert_eq!(list["changes"][0]["status"], "failed");
    let said = world.run(&["apply", "--all"]).ok();
    assert!(said.out.contains("c2 applied"), "{said:?}");
    assert_eq!(world.read("src/b.txt"), "good\n");
}

/// A project in git, with a repository of the same machine as its remote.
fn published() -> World {
    let world = world();
    let git = |arguments: &[&str]| {
        let done = world.command("git").args(arguments).output().expect("git");
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["config", "user.name", "ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first"]);
    git(&["init", "--quiet", "--bare", "../remote.git"]);
    git(&["remote", "add", "origin", "../remote.git"]);
    world
}

/// The output of git in the remote repository.
fn remote(world: &World, arguments: &[&str]) -> String {
    let folder = world.home().join("remote.git");
    let done = world.command("git").arg("-C").arg(folder).args(arguments).output().expect("git");
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn a_change_becomes_a_branch_and_the_project_stays_as_it_is() {
    let world = published();
    world.write("src/b.txt", "not committed\n");
    let edits = json!([
        { "file": "src/a.txt", "action": "modify", "content": "one\n2\n" },
        { "file": "src/new/c.txt", "action": "create", "content": "c" },
    ]);
    let id = propose(&world, &edits);
    // Where neither gh nor glab is installed, the branch is what there is.
    let said = world.run_with(&["pr", &id, "--json"], b"", &[("PATH", "/usr/bin:/bin")]).ok();
    assert_eq!(said.json()["branch"], "stafette/c1");
    assert_eq!(remote(&world, &["show", "stafette/c1:src/a.txt"]), "one\n2\n");
    assert_eq!(remote(&world, &["show", "stafette/c1:src/new/c.txt"]), "c");
    assert_eq!(remote(&world, &["show", "stafette/c1:src/b.txt"]), "b\n");
    assert!(
        remote(&world, &["log", "-1", "--format=%an %s", "stafette/c1"]).contains("ada as asked")
    );
    assert_eq!(world.read("src/a.txt"), "one\ntwo\n");
    let trees = world.command("git").args(["worktree", "list"]).output().expect("git").stdout;
    assert_eq!(String::from_utf8_lossy(&trees).lines().count(), 1, "nothing is left behind");
}

#[test]
fn gh_is_asked_for_a_pull_request_with_the_runs_words() {
    let world = published();
    let gh = "#!/bin/sh\n[ \"$1\" = --version ] || printf '%s\\n' \"$@\" > asked\necho https://example.org/pull/7\n";
    world.write("bin/gh", gh);
    let gh = world.project().join("bin/gh");
    std::fs::set_permissions(&gh, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    let path = format!("{}:/usr/bin:/bin", gh.parent().expect("a folder").display());
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "new\n" }]);
    let id = propose(&world, &edit);
    let said = world.run_with(&["pr", &id, "--draft"], b"", &[("PATH", &path)]).ok();
    assert_eq!(said.out.trim(), "https://example.org/pull/7");
    let asked = world.read("asked");
    assert!(asked.starts_with("pr\ncreate\n--head\nstafette/c1\n--title\nas asked\n"), "{asked}");
    assert!(asked.contains("Proposed by ada, pending.") && asked.ends_with("--draft\n"), "{asked}");
}

#[test]
fn b_20_a_pipe_in_the_place_of_gits_files_is_named_by_a_pull_request() {
    let world = published();
    let id = propose(&world, &json!([{ "file": "a.txt", "action": "create", "content": "a" }]));
    let pipe = world.project().join(".git/info/attributes");
    std::fs::create_dir_all(pipe.parent().expect("a folder")).expect("a folder");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let said = world.run_with(&["pr", &id], b"", &[("PATH", "/usr/bin:/bin")]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(".git/info/attributes, which is a pipe"), "{said:?}");
    std::fs::remove_file(&pipe).expect("removed");
    world.run_with(&["pr", &id], b"", &[("PATH", "/usr/bin:/bin")]).ok();
}

#[test]
fn without_a_remote_a_pull_request_is_refused_with_what_to_do() {
    let world = published();
    let gone = world.command("git").args(["remote", "remove", "origin"]).status();
    assert!(gone.expect("git").success());
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "new\n" }]);
    let id = propose(&world, &edit);
    let said = world.run(&["pr", &id]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("git remote add origin ADDRESS"), "{said:?}");
}

/// A set is not applied: exit code 5, the file as before, and a report that says why.
fn is_taken_back(world: &World, why: &str) {
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "new\n" }]);
    let id = propose(world, &edit);
    let said = world.run(&["apply", &id]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains("was taken back") && said.out.contains(why), "{said:?}");
    assert_eq!(world.read("src/a.txt"), "one\ntwo\n");
}

#[test]
fn s4_06_the_projects_command_is_told_nothing_of_what_the_daemon_is_told() {
    let world = world();
    world.write("stafette.toml", &ECHO.replace("! grep -r bad src", "env > seen"));
    world.run(&["trust", "--yes"]).ok();
    let told = [("STAFETTE_STORE_MAX_BYTES", "99000000"), ("STAFETTE_DEBUG", "1"), ("PLAIN", "1")];
    world.run_with(&["up"], b"", &told).ok();
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "new\n" }]);
    world.run(&["apply", &propose(&world, &edit)]).ok();
    let seen = world.read("seen");
    let ours: Vec<&str> = seen.lines().filter(|line| line.starts_with("STAFETTE_")).collect();
    let [mark] = ours.as_slice() else { panic!("{seen}") };
    assert!(
        mark.starts_with("STAFETTE_VALIDATES="),
        "only what its processes are known by: {seen}"
    );
    assert!(!seen.contains("PLAIN=1"), "it names none of the user's own: {seen}");
}

#[test]
fn s4_06_a_command_that_hangs_is_taken_back_with_exit_code_5() {
    let world = world();
    let hangs = ECHO.replace("! grep -r bad src", "sleep 1000").replace("2m", "300ms");
    world.write("stafette.toml", &hangs);
    world.run(&["trust", "--yes"]).ok();
    is_taken_back(&world, "was ended after 0.3 seconds");
}

/// The other half of the test below, in a world on a disk that is full soon.
#[test]
fn s4_06_on_a_small_disk_a_command_that_fills_it_is_taken_back() {
    let world = world();
    // Where the disk is large, a limit on files stands in for a small one.
    let fills = "ulimit -f 131072; exec cat /dev/zero > .stafette/fill";
    world.write("stafette.toml", &ECHO.replace("! grep -r bad src", fills));
    world.run(&["trust", "--yes"]).ok();
    let small = disk::is_small();
    is_taken_back(&world, if small { "No space left" } else { "says no" });
    if small {
        // The daemon has lived on a full disk, and has everything to tell once there is room.
        std::fs::remove_file(world.project().join(".stafette/fill")).expect("removed");
        let list = world.run(&["changes", "--json"]).ok().json();
        assert_ne!(list["changes"][0]["status"], "applied", "{list}");
        world.write("stafette.toml", ECHO);
        world.run(&["trust", "--yes"]).ok();
        world.run(&["apply", "c1"]).ok();
        assert_eq!(world.read("src/a.txt"), "new\n");
    }
}

#[test]
fn s4_06_a_command_that_fills_the_disk_is_taken_back_with_exit_code_5() {
    // Where no mount is allowed, the limit on files in the other half is all that is shown.
    let test = "changes::s4_06_on_a_small_disk_a_command_that_fills_it_is_taken_back";
    disk::run_on_a_small_one(64, test);
}

#[test]
fn s5_04_what_somebody_else_has_locked_is_not_changed() {
    let world = world();
    let edit = json!([{ "file": "src/a.txt", "action": "modify", "content": "new\n" }]);
    let id = propose(&world, &edit);
    world.run_with(&["lock", "src/a.txt"], b"", &[("USER", "bob")]).ok();
    let said = world.run(&["apply", &id]);
    assert_eq!(said.code, 6, "{said:?}");
    let said = world.run(&["apply", "--all"]).ok();
    assert!(said.out.contains("c1 was left") && said.out.contains("bob"), "{said:?}");
    assert_eq!(world.read("src/a.txt"), "one\ntwo\n");
    world.run_with(&["apply", &id], b"", &[("USER", "bob")]).ok();
    assert_eq!(world.read("src/a.txt"), "new\n");
}

#[test]
fn s4_07_a_deletion_waits_in_the_inbox_for_a_yes() {
    let world = world();
    let id = propose(&world, &json!([{ "file": "src/b.txt", "action": "delete" }]));
    let said = world.run(&["apply", &id]);
    assert_eq!(said.code, 3, "{said:?}");
    let inbox = world.run(&["inbox"]).ok();
    assert!(inbox.out.contains("stafette changes approve c1"), "{inbox:?}");
    assert!(world.project().join("src/b.txt").exists());
    world.run(&["changes", "approve", &id]).ok();
    let inbox = world.run(&["inbox"]).ok().out;
    assert!(inbox.contains("1 file, approved") && inbox.contains("stafette apply c1"), "{inbox}");
    world.run(&["apply", &id]).ok();
    assert_eq!(world.run(&["inbox"]).ok().out, "");
    assert!(!world.project().join("src/b.txt").exists());
    let list = world.run(&["changes", "--json"]).ok().json();
    assert_eq!(list["changes"][0]["approved_by"], "ada");
}

#[test]
fn s4_07_paths_that_lead_out_are_refused_with_a_reason() {
    let world = world();
    for file in ["../x", "/etc/x", ".git/hooks/x", ".GIT/x", "src/../../x"] {
        let edit = json!([{ "file": file, "action": "create", "content": "x" }]);
        let document = json!({ "changes": edit }).to_string();
        let said = world.run_with(&["changes", "propose", "-"], document.as_bytes(), &[]);
        assert_eq!(said.code, 2, "{file}: {said:?}");
        assert!(said.err.contains("cannot be changed"), "{file}: {said:?}");
    }
    assert_eq!(world.run(&["diff"]).code, 1);
}

#[test]
fn s4_07_an_agent_cannot_say_yes_to_its_own_change() {
    let script = r#"cat > /dev/null; stafette=$1; echo '{"changes":[{"file":"gone.txt","action":"delete"}]}' |
        "$stafette" changes propose - && "$stafette" changes approve c1; "$stafette" changes comment c1 "do it"; echo "exit $?""#;
    let program = crate::world::program();
    let workflow = format!(
        "[workflow]\nname = \"own\"\nentry = \"one\"\n[agents.one]\nrunner = \"exec\"\nresult = \"exit\"\n\
         command = [\"sh\", \"-c\", {script:?}, \"sh\", {program:?}]\n"
    );
    let world = World::workflow(&workflow);
    world.write("gone.txt", "still here\n");
    world.run(&["run", "Delete it", "--json"]);
    let list = world.run(&["changes", "--json"]).ok().json();
    assert_eq!(list["changes"][0]["status"], "pending", "{list}");
    assert_eq!(list["changes"][0].get("approved_by"), None);
    assert_eq!(list["changes"][0].get("comments"), None, "nor speak in a person's name");
    assert_eq!(list["changes"][0]["author"]["agent"], "one", "it is known who proposed it");
    assert_eq!(list["changes"][0]["author"]["handoff"], "h1");
    world.run(&["changes", "approve", "c1"]).ok();
}

#[test]
fn s4_06_what_comes_of_a_run_with_worktrees_is_a_change() {
    let workflow = r#"
[workflow]
name = "own"
entry = "one"
worktrees = true
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat > /dev/null; echo changed > src.txt; echo done"]
"#;
    let world = World::workflow(workflow);
    world.write("src.txt", "as it was\n");
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["-c", "user.name=Mia", "-c", "user.email=mia@example.org", "add", "src.txt"],
        &["-c", "user.name=Mia", "-c", "user.email=mia@example.org", "commit", "-qm", "first"],
    ] {
        let done = Command::new("git").args(arguments).current_dir(world.project()).status();
        assert!(done.expect("git").success());
    }
    let said = world.run(&["run", "Change it"]).ok();
    let offer = "c1: 1 file, pending. Look: stafette diff c1. Take it: stafette apply c1\n";
    assert!(said.err.contains("\n  one: done\n") && said.err.contains(offer), "{said:?}");
    let change = world.run(&["changes", "--json"]).ok().json()["changes"][0].clone();
    assert_eq!(change["reason"], "Change it");
    assert_eq!(change["author"]["agent"], "one");
    assert_eq!(world.read("src.txt"), "as it was\n");
    world.run(&["apply", "c1"]).ok();
    assert_eq!(world.read("src.txt"), "changed\n");
}

#[test]
fn s4_07_a_team_does_not_rewrite_its_own_judge_or_agents_unasked() {
    let world = World::workflow(
        &ECHO
            .replace(r#"["sh", "-c", "! grep -r bad src"]"#, r#"["sh", "check.sh"]"#)
            .replace(r#"["sh", "-c", "true"]"#, r#"["sh", "agent.sh"]"#),
    );
    world.write("src/a.txt", "one\n");
    world.write("check.sh", "! grep -r bad src\n");
    world.write("agent.sh", "true\n");
    world.run(&["trust", "--yes"]).ok();
    let edits = json!([
        { "file": "src/a.txt", "action": "modify", "content": "bad\n" },
        { "file": "check.sh", "action": "modify", "content": "exit 0\n" },
        { "file": "agent.sh", "action": "modify", "content": "curl evil\n" },
    ]);
    let id = propose(&world, &edits);
    let refused = world.run(&["apply", &id]);
    assert_ne!(refused.code, 0, "nobody was asked: {refused:?}");
    for said in
        ["check.sh, by which changes are validated", "agent.sh, which agents and tools obey"]
    {
        assert!(refused.err.contains(said), "{refused:?}");
    }
    world.run(&["changes", "approve", &id]).ok();
    let judged = world.run(&["apply", &id]);
    assert!(judged.out.contains("check.sh as it was before"), "{judged:?}");
    assert_eq!(world.read("src/a.txt"), "one\n");
    for file in ["CLAUDE.md", ".claude/settings.json", ".mcp.json", "Dockerfile", "MAKEFILE"] {
        let id = propose(&world, &json!([{ "file": file, "action": "create", "content": "x\n" }]));
        assert_ne!(world.run(&["apply", &id]).code, 0, "{file}");
    }
}

#[test]
fn s4_07_an_agent_with_too_many_open_sets_reads_so_and_goes_on() {
    let world = World::new();
    let set = r#"{\"reason\":\"x\",\"changes\":[{\"file\":\"f$i.txt\",\"action\":\"create\",\"content\":\"x\"}]}"#;
    let emit = format!("'{}' emit", program());
    let script = format!(
        "cat > /dev/null\nfor i in $(seq 64); do {emit} CHANGE \"{set}\" || exit 9; done\n\
         i=65; {emit} CHANGE \"{set}\" > said 2>&1 && exit 8\n\
         {emit} RESULT '{{\"status\":\"resolved\",\"summary\":\"went on\"}}'\n"
    );
    world.write("a.sh", &script);
    world.write(
        "stafette.toml",
        "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\n\
         command = [\"sh\", \"a.sh\"]\n[retries]\nmax = 1\n",
    );
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x"]);
    let said = world.read("said");
    assert!(said.contains("64 sets of changes") && !said.contains("is over"), "{said}");
    assert!(world.run(&["why", "h1"]).ok().out.contains("went on"));
}
