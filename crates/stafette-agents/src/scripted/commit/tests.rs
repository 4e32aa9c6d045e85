use super::*;

fn key(text: &str) -> TurnKey {
    format!("00000000-0000-0000-0000-000000000000/{text}").parse().unwrap()
}

fn repository() -> (tempfile::TempDir, AgentName) {
    let folder = tempfile::tempdir().unwrap();
    let agent: AgentName = "builder".parse().unwrap();
    git(folder.path(), &agent, &["init", "--quiet", "-b", "main"]).unwrap();
    (folder, agent)
}

#[test]
fn b_01_a_turn_commits_once_and_finds_its_commit_again() {
    let (folder, agent) = repository();
    let folder = folder.path();
    fs::write(folder.join("a"), "1").unwrap();
    let twelfth = commit(folder, &agent, key("h1/1.12"), "twelve").unwrap();
    fs::write(folder.join("a"), "2").unwrap();
    let Ok(Commit::Made(first)) = commit(folder, &agent, key("h1/1.1"), "one") else { panic!() };
    assert_ne!(twelfth, Commit::Made(first.clone()), "1.1 is not 1.12");
    fs::write(folder.join("a"), "3").unwrap();
    let again = commit(folder, &agent, key("h1/1.1"), "one");
    assert_eq!(again, Ok(Commit::Found(first.clone())));

    let author = answer(folder, &["show", "--no-patch", "--format=%an <%ae>", &first]);
    assert_eq!(author.as_deref(), Some("builder <builder@stafette.local>"));
}

#[test]
fn a_turn_that_changed_nothing_makes_no_commit() {
    let (folder, agent) = repository();
    let folder = folder.path();
    fs::write(folder.join("a"), "1").unwrap();
    let Ok(Commit::Made(first)) = commit(folder, &agent, key("h1/1.1"), "one") else { panic!() };
    let second = commit(folder, &agent, key("h1/2.1"), "one");
    assert_eq!(second, Ok(Commit::Found(first)));
}

#[test]
fn b_01_a_lock_that_a_killed_git_left_does_not_stop_the_next_one() {
    let (folder, agent) = repository();
    let folder = folder.path();
    let lock = folder.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    fs::write(folder.join("a"), "1").unwrap();
    assert!(matches!(commit(folder, &agent, key("h1/1.1"), "one"), Ok(Commit::Made(_))));
    assert!(!lock.exists());
}

#[test]
fn outside_of_a_repository_git_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let done = commit(folder.path(), &"builder".parse().unwrap(), key("h1/1.1"), "one");
    assert!(done.is_err_and(|message| message.contains("not a git repository")));
}
