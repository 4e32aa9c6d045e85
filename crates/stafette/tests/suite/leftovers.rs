//! What comes of a run with worktrees, and cannot be a change or not be applied as it is.

use std::process::Command;

use crate::world::World;

/// A repository whose agent does what `agent.sh` says, in a worktree.
fn world(agent: &str) -> World {
    let workflow = r#"
[workflow]
name = "left"
entry = "one"
worktrees = true
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "agent.sh"]
"#;
    let world = World::with(workflow, &[("agent.sh", agent), ("a.txt", "one\ntwo\n")]);
    git(&world, &["init", "-q", "-b", "main"]);
    git(&world, &["config", "user.name", "Mia"]);
    git(&world, &["config", "user.email", "mia@example.org"]);
    git(&world, &["add", "--all"]);
    git(&world, &["commit", "-qm", "first"]);
    world
}

fn git(world: &World, arguments: &[&str]) -> String {
    let done = Command::new("git").args(arguments).current_dir(world.project()).output();
    let done = done.expect("git");
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// The branch with the result of the last run.
fn branch(world: &World) -> String {
    let names = ["branch", "--list", "--format=%(refname:short)", "stafette/result/*"];
    git(world, &names).lines().last().expect("a branch").to_owned()
}

#[test]
fn s4_06_what_cannot_be_a_change_is_told_and_the_rest_is_one() {
    let agent = "cat > /dev/null; echo x > made.txt; ln -s made.txt alias; \
                 head -c 20000000 /dev/zero > big.bin; echo y > 'back\\slash'; \
                 mkdir inner && cd inner && git init -q && echo z > file && git add file && \
                 git -c user.name=o -c user.email=o@o commit -qm inner";
    let world = world(agent);
    let said = world.run(&["run", "Make it"]).ok();
    assert!(said.err.contains("c1: 1 file, pending"), "{said:?}");
    assert!(said.err.contains("4 files are in no change"), "{said:?}");
    for (file, why) in [
        ("alias", "it is a link"),
        ("big.bin", "it is larger than the 16 MiB that a change may hold"),
        ("'back\\slash'", "it has a backslash in it"),
        ("inner", "it is a git repository of its own"),
    ] {
        assert!(said.err.contains(&format!("  {file}: {why}\n")), "{file}: {said:?}");
    }
    let branch = branch(&world);
    assert!(said.err.contains(&format!("git checkout {branch} -- ")), "{said:?}");
    let edits = world.run(&["changes", "--json"]).ok().json()["changes"][0]["edits"].clone();
    assert_eq!(
        (edits[0]["file"].as_str(), edits.as_array().map(Vec::len)),
        (Some("made.txt"), Some(1))
    );
    // Whoever comes later reads so as well.
    let status = world.run(&["status", &branch[branch.len() - 8..]]).ok();
    assert!(status.out.contains("alias: it is a link"), "{status:?}");
    assert!(world.run(&["why"]).ok().out.contains("4 files are in no change"));
    assert!(world.run(&["log"]).ok().out.contains("4 files are in no change"));
    git(&world, &["checkout", &branch, "--", "alias"]);
    assert!(world.project().join("alias").is_symlink());
}

#[test]
fn s4_06_more_files_than_a_change_may_hold_are_told_with_their_branch() {
    let world = world("cat > /dev/null; for i in $(seq 2100); do echo $i > f$i; done");
    let said = world.run(&["run", "Make many"]).ok();
    assert!(said.err.contains("2100 files are in no change"), "{said:?}");
    assert!(said.err.contains("a change has at most 2000 edits"), "{said:?}");
    let merge = format!("git merge {}", branch(&world));
    assert!(said.err.contains(&merge), "{said:?}");
    git(&world, &merge.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(world.read("f2100"), "2100\n");
}

#[test]
fn s4_06_a_diff_shows_who_may_execute_a_file_and_git_applies_it() {
    let world = world(
        "cat > /dev/null; echo '#!/bin/sh' > tool.sh; chmod +x tool.sh agent.sh; echo 2 >> a.txt",
    );
    world.run(&["run", "Make a tool"]).ok();
    let diff = world.run(&["diff", "c1"]).ok().out;
    assert!(diff.contains("new file mode 100755"), "{diff}");
    assert!(diff.contains("old mode 100644\nnew mode 100755"), "{diff}");
    let stat = world.run(&["diff", "c1", "--stat"]).ok().out;
    assert!(stat.contains("+1 -0, executable") && stat.contains("+0 -0, executable"), "{stat}");
    let patch = &diff[diff.find("diff --git").expect("a patch")..];
    world.write("../change.patch", patch);
    git(&world, &["apply", "--index", "../change.patch"]);
    let modes = git(&world, &["ls-files", "--stage", "tool.sh", "agent.sh"]);
    assert_eq!(modes.matches("100755").count(), 2, "{modes}");
}

#[test]
fn s4_06_what_was_undone_can_be_applied_again() {
    let world = world("cat > /dev/null; echo 2 >> a.txt");
    world.run(&["run", "Add it"]).ok();
    world.run(&["apply", "c1"]).ok();
    world.run(&["undo", "c1"]).ok();
    assert_ne!(world.run(&["undo", "c1"]).code, 0);
    let told = world.run(&["resume"]).ok();
    assert_eq!(told.err.matches("c1 undone").count(), 1, "{told:?}");
    assert!(told.err.contains("c1 stays undone: c1 is undone, so it cannot be undone"), "{told:?}");
    let said = world.run(&["apply", "c1"]).ok();
    assert!(said.out.contains("c1 applied"), "{said:?}");
    assert_eq!(world.read("a.txt"), "one\ntwo\n2\n");
    let change = world.run(&["changes", "--json"]).ok().json()["changes"][0].clone();
    assert_eq!((change["status"].as_str(), change.get("undone_at")), (Some("applied"), None));
    world.run(&["undo", "c1"]).ok();
    assert_eq!(world.read("a.txt"), "one\ntwo\n");
}

#[test]
fn s4_06_what_was_changed_since_is_told_with_the_way_on() {
    let world = world("cat > /dev/null; echo $$ >> a.txt");
    world.run(&["run", "First"]).ok();
    world.run(&["run", "Second"]).ok();
    world.run(&["apply", "c1"]).ok();
    let said = world.run(&["apply", "c2"]);
    let branch = world.run(&["changes", "--json"]).ok().json()["changes"][1]["author"]["run"]
        .as_str()
        .map(|run| format!("stafette/result/{}", &run[run.len() - 8..]))
        .expect("a run");
    assert!(said.err.contains(&format!("`git merge {branch}`")), "{said:?}");
    // What it names is the way: git merges the two, and a person says what is right.
    let merged = Command::new("git").args(["merge", &branch]).current_dir(world.project()).output();
    let merged = String::from_utf8_lossy(&merged.expect("git").stdout).into_owned();
    assert!(merged.contains("CONFLICT"), "{merged}");
    git(&world, &["merge", "--abort"]);
    let why = world.run(&["why", "c2"]).ok().out;
    assert!(why.contains("stays pending: a.txt is not what c2 was made against"), "{why}");
    world.run(&["changes", "refuse", "c2"]).ok();

    let applied = world.read("a.txt");
    world.write("a.txt", "mine\n");
    let said = world.run(&["undo", "c1"]);
    assert!(said.err.contains("git stash push -- a.txt"), "{said:?}");
    git(&world, &["stash", "push", "-q", "--", "a.txt"]);
    assert_eq!(world.read("a.txt"), applied);
    world.run(&["undo", "c1"]).ok();
}

#[test]
fn s4_06_a_commit_of_a_persons_edit_and_one_on_no_branch_are_told() {
    let world = world("cat > /dev/null; echo 2 >> a.txt");
    world.write("a.txt", "mine\n");
    git(&world, &["checkout", "-q", "--detach"]);
    world.run(&["run", "Add it"]).ok();
    let said = world.run(&["apply", "c1"]).ok();
    assert!(said.out.contains("a commit of its own: \"Before c1: Add it\""), "{said:?}");
    assert!(said.out.contains("HEAD is on no branch"), "{said:?}");
    assert_eq!(git(&world, &["log", "--format=%s", "-2"]), "c1: Add it\nBefore c1: Add it\n");
}

#[test]
fn s4_06_two_edits_of_one_file_are_refused_in_plain_words() {
    let world = world("true");
    let edit = r#"{ "file": "a.txt", "action": "modify", "content": "x" }"#;
    let document = format!(r#"{{ "reason": "twice", "codeChanges": [{edit}, {edit}] }}"#);
    let said = world.run_with(&["changes", "propose", "-"], document.as_bytes(), &[]);
    assert!(said.err.contains("a.txt has two edits"), "{said:?}");
}

#[test]
fn b_22_prune_removes_branches_of_what_is_settled_and_says_what_it_keeps() {
    let world = world("cat > /dev/null; echo $$ > \"$(date +%N)\"; test -e a.txt || ln -s x y");
    world.run(&["run", "First"]).ok();
    world.run(&["run", "Second"]).ok();
    world.run(&["apply", "c1"]).ok();
    world.run(&["down"]).ok();
    let prune = ["prune", "--older-than", "0s", "--keep", "0", "--yes"];
    let said = world.run(&prune).ok();
    let refs = || {
        git(
            &world,
            &["for-each-ref", "--format=%(refname)", "refs/stafette", "refs/heads/stafette"],
        )
    };
    let kept = refs();
    assert_eq!(kept.lines().count(), 1, "what waits stays, once: {kept}");
    let branch = kept.trim().trim_start_matches("refs/heads/");
    let told = format!("{branch}: git branch -D {branch}");
    assert!(format!("{}{}", said.out, said.err).contains(&told), "{said:?}");
    world.run(&["changes", "refuse", "c2"]).ok();
    world.run(&["down"]).ok();
    world.run(&prune).ok();
    assert_eq!(refs(), "");
    let left = std::fs::read_dir(world.state().join("worktrees/worktrees")).expect("a folder");
    let left: Vec<_> = left.map(|it| it.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| name == ".trash"), "{left:?}");
}
