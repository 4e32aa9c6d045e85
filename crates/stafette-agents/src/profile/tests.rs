use std::fs;

use super::*;

fn complaints(text: &str) -> String {
    let mistakes = Profile::parse(text).expect_err("the file should not be accepted");
    mistakes.iter().map(|mistake| stafette_config::render(mistake, "mine.toml", text)).collect()
}

const MINE: &str = r#"name = "mine"
title = "My agent"
[detect]
program = "sh"
[exec]
command = ["my-agent", "{resume}", "-"]
output = "json-lines"
resume = ["--continue", "{session}"]
[[stream.rules]]
when = { "/kind" = "said" }
emit = "text"
text = "/what"
"#;

#[test]
fn every_built_in_profile_is_read_and_makes_sense() {
    let library = Library::built_in();
    assert_eq!(library.broken(), [], "{}", library.broken()[0].render());
    let names = ["claude", "codex", "gemini", "opencode", "qwen", "goose", "aider", "shell"];
    assert_eq!(library.names(), names);
    for profile in library.all() {
        assert!(profile.name == "shell" || profile.exec.is_some(), "{}", profile.name);
    }
}

#[test]
fn mistakes_in_a_profile_are_shown_with_line_and_column() {
    let text = MINE.replace("output =", "outptu =").replace("title =", "titel =");
    insta::assert_snapshot!(complaints(&text), @r#"
    error[missing-key]: missing key `title`
     --> mine.toml:1:1
      |
    1 | name = "mine"
      | ^
    error[unknown-key]: unknown key `titel`
     --> mine.toml:2:1
      |
    2 | titel = "My agent"
      | ^^^^^
      = help: did you mean `title`?
    error[unknown-key]: unknown key `outptu`
     --> mine.toml:7:1
      |
    7 | outptu = "json-lines"
      | ^^^^^^
      = help: did you mean `output`?
    "#);
    let text = MINE.replace("text = \"/what\"", "text = \"what\"").replace("\"{resume}\", ", "");
    let told = complaints(&text);
    for part in
        ["`what` is no place", "one place for `{resume}`", "mine.toml:6:11", "mine.toml:9:1"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let nothing =
        "name = \"x y\"\ntitle = \"X\"\n[detect]\nprogram = \"x\"\n[env]\npass = [\"A=B\"]\n";
    let told = complaints(nothing);
    for part in ["letters, digits", "cannot be started", "`A=B` cannot name", "mine.toml:6:9"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_user_adds_and_replaces_profiles_by_files_and_a_project_has_the_last_word() {
    let home = tempfile::tempdir().unwrap();
    let (user, project) = (home.path().join("user"), home.path().join("project"));
    fs::create_dir_all(&user).unwrap();
    fs::create_dir_all(&project).unwrap();
    fs::write(user.join("mine.toml"), MINE).unwrap();
    fs::write(user.join("claude.toml"), MINE.replace("mine", "claude")).unwrap();
    fs::write(project.join("mine.toml"), MINE.replace("My agent", "Ours")).unwrap();
    fs::write(project.join("codex.toml"), "name = 3").unwrap();
    fs::write(project.join("notes.md"), "no profile").unwrap();
    let library = Library::with(&[user, project.clone(), home.path().join("none")]);
    assert_eq!(library.get("mine").map(|profile| profile.title.as_str()), Some("Ours"));
    assert_eq!(library.file("mine"), Some(project.join("mine.toml").as_path()));
    assert_eq!(library.get("claude").map(|profile| profile.title.as_str()), Some("My agent"));
    assert_eq!(library.get("codex"), None, "a broken file hides what it was to replace");
    assert_eq!(library.broken().len(), 1);
    assert!(library.broken()[0].render().contains("codex.toml:1:8"));
    assert!(library.installed().any(|profile| profile.name == "mine"));
    assert!(library.installed().all(|profile| profile.name != "shell"));
    let misnamed = MINE.replace("\"mine\"", "\"other\"");
    fs::write(project.join("mine.toml"), misnamed).unwrap();
    let library = Library::with(&[project]);
    assert_eq!(library.get("mine"), None);
    assert!(library.broken().iter().any(|broken| broken.render().contains("is called `other`")));
}

#[test]
fn a_command_goes_on_with_a_session_or_starts_a_new_one() {
    let profile = Profile::parse(MINE).unwrap();
    let exec = profile.exec.unwrap();
    let with = |session| resumed(&exec.command, &exec.resume, session);
    assert_eq!(with(None), ["my-agent", "-"]);
    assert_eq!(with(Some("s1")), ["my-agent", "--continue", "s1", "-"]);
}

#[test]
fn b_23_a_refused_key_is_told_by_the_row_of_the_program_and_by_no_other() {
    let library = Library::built_in();
    let is_hopeless = |name: &str, row: &str| {
        let profile = library.get(name).expect("a built-in profile");
        profile.pty.as_ref().is_some_and(|pty| pty.is_hopeless(row))
    };
    // As Claude Code 2.1.325 and Codex 0.166.0 show it.
    for (name, row) in [
        ("claude", "✻ 401 invalid x-api-key · Retrying in 3s · attempt 3/10"),
        ("claude", "✻ 403 Request not allowed · Retrying in 9s · attempt 4/10"),
        (
            "codex",
            "■ unexpected status 401 Unauthorized: Incorrect API key provided., url: http://x",
        ),
    ] {
        assert!(is_hopeless(name, row), "{row}");
    }
    for (name, row) in [
        ("claude", "✻ API error · Retrying in 1s · attempt 1/10"),
        ("claude", "✻ 401 invalid x-api-key · Retrying in 1s · attempt 2/10"),
        ("claude", "✻ 529 overloaded · Retrying in 1s · attempt 3/10"),
        ("claude", "  ⎿  GET /x 401 Unauthorized, retrying in 2s (attempt 1/3)"),
        ("claude", "  ⎿  ✻ 401 no · Retrying in 2s · attempt 3/10"),
        ("claude", "     ✻ 401 no · Retrying in 2s · attempt 3/10"),
        ("claude", "● ✻ 401 no · Retrying in 2s · attempt 3/10"),
        ("claude", "     28 +hopeless = [\"✻ 401 *· retrying in *· attempt 3/\"]"),
        ("codex", "  └ ■ unexpected status 401 Unauthorized"),
        ("codex", "• ■ unexpected status 401 Unauthorized"),
    ] {
        assert!(!is_hopeless(name, row), "{row}");
    }
}

#[test]
fn b_09_the_phrases_of_every_vendor_are_understood() {
    let library = Library::built_in();
    let wall = Wall::new(Time::parse("2026-11-15T11:00:00Z").unwrap(), "UTC");
    for (name, message, until) in [
        ("claude", "Claude AI usage limit reached|1794823200", Some("2026-11-16T10:00:00.000Z")),
        ("claude", "You’ve hit your limit · resets 3pm (UTC)", Some("2026-11-15T15:00:00.000Z")),
        (
            "claude",
            "You've hit your weekly limit · resets Nov 20 at 5pm (UTC)",
            Some("2026-11-20T17:00:00.000Z"),
        ),
        (
            "claude",
            "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
            None,
        ),
        (
            "codex",
            "You’ve hit your usage limit. Upgrade to Pro or try again at Nov 16th, 2026 10:00 AM.",
            Some("2026-11-16T10:00:00.000Z"),
        ),
        (
            "codex",
            "rate limit exceeded: Rate limit reached for gpt-5. Please try again in 11.054s.",
            Some("2026-11-15T11:00:11.054Z"),
        ),
        (
            "gemini",
            "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later.",
            None,
        ),
        (
            "gemini",
            "Usage limit reached for gemini-3-flash. Access resets at 10:57 PM GMT-3.",
            Some("2026-11-16T01:57:00.000Z"),
        ),
        ("qwen", "You exceeded your current quota, please check your plan", None),
        ("opencode", "Too Many Requests: retry after 30 seconds", Some("2026-11-15T11:00:30.000Z")),
        ("aider", "litellm.RateLimitError: try again in 20s", Some("2026-11-15T11:00:20.000Z")),
        ("goose", "Rate limit exceeded. Retry in 1 minute.", Some("2026-11-15T11:01:00.000Z")),
    ] {
        let profile = library.get(name).unwrap();
        let used_up =
            profile.used_up(message, &wall).unwrap_or_else(|| panic!("{name}: {message}"));
        assert_eq!(used_up.until.map(Time::rfc3339).as_deref(), until, "{name}: {message}");
    }
    for name in library.names() {
        let profile = library.get(name).unwrap();
        let innocent = "I added a limit to the retries of the upload, see the tests.";
        assert_eq!(profile.used_up(innocent, &wall), None, "{name}");
    }
}
