//! Setting a project up: init, trust, check, doctor.

use std::fs;

use crate::world::{ECHO, World, repository};

#[test]
fn init_shows_what_it_writes_and_what_it_writes_is_sound() {
    for template in ["pair", "feature", "odei", "phases", "council"] {
        let world = World::new();
        let said = world.run(&["init", "--template", template, "--agent", "true", "--yes"]).ok();
        let written = world.read("stafette.toml");
        assert!(said.err.contains("+[workflow]"), "the diff is shown: {said:?}");
        assert!(written.contains("command = [\"true\"]") && !written.contains("@agent@"));
        world.run(&["check"]).ok();
        assert_eq!(world.run(&["trust", "--list", "--json"]).json()["trusted"], true);
    }
}

#[test]
fn init_writes_the_profile_of_the_agent() {
    let world = World::new();
    world.run(&["init", "--agent", "codex", "--yes"]).ok();
    let written = world.read("stafette.toml");
    assert!(written.contains("profile = \"codex\"") && !written.contains("command ="), "{written}");
    world.run(&["check"]).ok();
    let commands = world.run(&["trust", "--list", "--json"]).json()["powers"].clone();
    let line = commands[0]["text"].as_str().expect("a command");
    assert!(line.starts_with("codex exec") && !line.contains("{resume}"), "{line}");
    let world = World::new();
    world.run(&["init", "--agent", "my-agent --ask {prompt}", "--yes"]).ok();
    let written = world.read("stafette.toml");
    assert!(written.contains("command = [\"my-agent\", \"--ask\", \"{prompt}\"]"), "{written}");
    assert!(written.contains("prompt_via = \"argument\""), "{written}");
}

#[test]
fn b_08_a_new_file_has_the_sandbox_for_agents_that_work_inside_and_for_commands() {
    let said = World::new().run(&["doctor", "--json"]).json();
    let findings = said["findings"].as_array().expect("findings");
    let is_enforced = findings.iter().any(|it| it["name"] == "sandbox" && it["ok"] == true);
    let all = "\nsandbox = \"auto\"\npermissions = \"all\"\n";
    let held = |line| if is_enforced { all } else { line };
    for (agent, line) in [
        ("claude", held("\nsandbox = \"auto\"\n")),
        ("codex", held("\n# sandbox = \"auto\" would")),
        ("my-agent --ask {prompt}", "\nsandbox = \"auto\" # \"off\" if"),
        ("aider", held("\n# sandbox = \"auto\" would")),
    ] {
        let world = World::new();
        let said = world.run(&["init", "--template", "feature", "--agent", agent, "--yes"]).ok();
        let written = world.read("stafette.toml");
        assert_eq!(written.matches(line).count(), 4, "one for each agent, {agent}: {written}");
        let told = said.err.contains("this system does not enforce all of it");
        assert_eq!(told, !is_enforced && !agent.starts_with("my-"), "{said:?}");
        world.run(&["check"]).ok();
    }
    // A file that says nothing keeps its mode.
    let listed = World::workflow(ECHO);
    let listed = listed.run(&["trust", "--list"]).ok().out;
    assert!(listed.contains("off: its processes have all rights of their user"), "{listed}");
}

#[test]
fn b_20_init_follows_no_link_that_a_repository_brought_along() {
    use std::os::unix::fs::symlink;
    let outside = |world: &World| world.home().join("outside");
    let init = ["init", "--agent", "true", "--yes", "--force"];
    for name in ["stafette.toml", ".gitignore"] {
        let world = World::new();
        fs::create_dir_all(world.project().join(".git")).expect("a folder");
        fs::write(outside(&world), "mine\n").expect("a file");
        symlink(outside(&world), world.project().join(name)).expect("a link");
        let said = world.run(&init);
        assert!(said.code == 2 && said.err.contains("it is a link"), "{name}: {said:?}");
        assert_eq!(fs::read_to_string(outside(&world)).expect("a file"), "mine\n");
        assert!(!world.project().join("stafette.toml").is_file() || name == "stafette.toml");
    }
    // A link that leads nowhere is there already, too.
    let world = World::new();
    symlink(outside(&world), world.project().join("stafette.toml")).expect("a link");
    assert_eq!(world.run(&["init", "--agent", "true", "--yes"]).code, 2);
    assert!(!outside(&world).exists());
    // A folder for the samples.
    let world = World::new();
    fs::create_dir_all(outside(&world)).expect("a folder");
    symlink(outside(&world), world.project().join("scripts")).expect("a link");
    let said = world.run(&["init", "--template", "phases", "--scripted", "--yes"]);
    assert!(said.code == 2 && said.err.contains("it is a link"), "{said:?}");
    assert_eq!(fs::read_dir(outside(&world)).expect("a folder").count(), 0);
    // What is no file is not read: a pipe would never end.
    let world = World::new();
    let pipe = world.project().join("stafette.toml");
    assert!(world.command("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let said = world.run(&init);
    assert!(said.code == 2 && said.err.contains("not a regular file"), "{said:?}");
}

/// A world in which only these agents are installed; they do nothing.
fn with_agents(names: &[&str]) -> (World, String) {
    let world = World::new();
    let bin = world.home().join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    for name in names {
        stafette_testkit::program::write(&bin.join(name), "#!/bin/sh\n").expect("a program");
    }
    std::fs::create_dir_all(world.project().join(".git")).expect("a repository");
    (world, format!("{}:/usr/bin:/bin", bin.display()))
}

#[test]
fn b_23_init_makes_a_pair_of_what_is_installed() {
    let (world, path) = with_agents(&["codex", "claude", "goose"]);
    let said = world.run_with(&["init", "--yes"], b"", &[("PATH", &path)]).ok();
    assert!(said.err.contains("claude builds, codex reviews"), "{said:?}");
    let written = world.read("stafette.toml");
    assert!(written.lines().count() <= 20 && written.contains("worktrees = true"), "{written}");
    let place = |text: &str| written.find(text).unwrap_or_else(|| panic!("{text}: {written}"));
    assert!(place("profile = \"claude\"") < place("[agents.reviewer]"), "{written}");
    assert!(place("[agents.reviewer]") < place("profile = \"codex\""), "{written}");
    world.run(&["check"]).ok();
    assert_eq!(world.run(&["trust", "--list", "--json"]).json()["trusted"], true);
    let (alone, path) = with_agents(&["goose"]);
    alone.run_with(&["init", "--yes"], b"", &[("PATH", &path)]).ok();
    assert_eq!(alone.read("stafette.toml").matches("profile = \"goose\"").count(), 2);
}

#[test]
fn b_23_where_no_agent_is_installed_init_says_so_and_offers_scripts() {
    let (world, path) = with_agents(&[]);
    let said = world.run_with(&["init", "--yes"], b"", &[("PATH", &path)]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("No agent is installed") && said.err.contains("--scripted"));
    assert_eq!(world.read("stafette.toml"), "");
    let world = World::new();
    world.run(&["init", "--scripted", "--yes"]).ok();
    let view = world.run(&["run", "--foreground", "Greet me", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
}

#[test]
fn b_23_run_writes_the_workflow_first_and_its_json_is_one_document() {
    let (world, path) = with_agents(&["goose"]);
    let said = world.run_with(&["run", "Greet me", "--json"], b"", &[("PATH", &path)]);
    assert!(said.code == 2 && said.out.contains("stafette init"), "unasked: {said:?}");
    let words = ["run", "Greet me", "--yes", "--detach", "--json"];
    let said = world.run_with(&words, b"", &[("PATH", &path)]).ok();
    assert!(said.json()["run"].is_string(), "{said:?}");
    assert!(world.read("stafette.toml").contains("goose"));
}

/// A profile that a user brings along.
const PARROT: &str = r#"
name = "parrot"
title = "A parrot"
[detect]
program = "sh"
[exec]
command = ["sh", "-c", "echo '{\"said\":\"Pretty\",\"cost\":0.5}'"]
output = "json-lines"
[[stream.rules]]
exists = ["/said"]
emit = "final"
text = "/said"
cost = "/cost"
"#;

const WITH_PARROT: &str = r#"
[workflow]
name = "birds"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
profile = "parrot"
"#;

#[test]
fn a_user_adds_a_profile_by_a_file_and_a_change_of_it_ends_the_trust() {
    let world = World::new();
    world.write("stafette.toml", WITH_PARROT);
    let said = world.run(&["check"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("there is no profile `parrot`") && said.out.contains(":8:11"));
    world.write("profiles/parrot.toml", PARROT);
    world.run(&["check"]).ok();
    world.run(&["trust", "--yes"]).ok();
    let run = world.run(&["run", "--foreground", "--json", "Say something"]).ok();
    assert!(run.out.contains("0.5"), "the cost is known: {run:?}");
    let doctor = world.run(&["doctor", "--json"]).json();
    let found = |name: &str| {
        let findings = doctor["findings"].as_array().expect("findings").clone();
        findings.into_iter().find(|finding| finding["name"] == name)
    };
    assert!(found("agents").expect("agents")["said"].as_str().expect("names").contains("parrot"));
    assert!(found("profiles").is_none());
    world.write("profiles/parrot.toml", &PARROT.replace("Pretty", "Polly"));
    assert_eq!(world.run(&["trust", "--list", "--json"]).json()["trusted"], false);
    world.write("profiles/parrot.toml", &PARROT.replace("title", "titel"));
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("parrot.toml:3:1") && said.out.contains("did you mean `title`?"));
}

#[test]
fn what_an_agent_writes_into_a_profile_is_not_run_unseen() {
    let world = World::new();
    let workflow = WITH_PARROT.to_owned() + "[retries]\nbackoff = 1\n[limits]\ncooldown = 0\n";
    world.write("stafette.toml", &workflow);
    let command = r#"cat >/dev/null; [ -e once ] && { echo trusted > by.txt; exit; }; touch once; sed -i s/trusted/planted/ profiles/parrot.toml; exit 1"#;
    let profile = format!(
        "name = \"parrot\"\ntitle = \"x\"\ndetect = {{ program = \"sh\" }}\n\
         [exec]\ncommand = [\"sh\", \"-c\", '{command}']\n"
    );
    world.write("profiles/parrot.toml", &profile);
    let listed = world.run(&["trust", "--list", "--json"]).json()["powers"].to_string();
    assert!(listed.contains("profile parrot") && listed.contains("profiles/parrot.toml"));
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--foreground", "x"]).ok();
    assert!(world.read("profiles/parrot.toml").contains("planted"), "it did write");
    assert_eq!(world.read("by.txt"), "trusted\n", "the run goes on with what was trusted");
    let said = world.run(&["run", "--foreground", "x"]);
    assert!(said.err.contains("not trusted"), "the next one does not begin: {said:?}");
}

#[test]
fn init_never_overwrites_and_never_writes_without_a_yes() {
    let world = World::new();
    assert_eq!(world.run(&["init"]).code, 2, "nobody is there to say yes");
    assert_eq!(world.read("stafette.toml"), "");
    world.write("stafette.toml", "mine");
    assert_eq!(world.run(&["init", "--yes"]).code, 2);
    assert_eq!(world.read("stafette.toml"), "mine");
}

#[test]
fn nothing_runs_before_it_is_trusted_and_a_change_ends_the_trust() {
    let world = World::workflow(ECHO);
    let hash = world.run(&["trust", "--list", "--json"]).json()["hash"].clone();
    world.write("stafette.toml", &format!("{ECHO}\n# changed\n"));
    let said = world.run(&["run", "--foreground", "hello"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("not trusted") && said.err.contains("stafette trust"), "{said:?}");
    let listed = world.run(&["trust", "--list", "--json"]).json();
    assert_eq!(listed["trusted"], false);
    assert_ne!(listed["hash"], hash);
    assert_eq!(listed["powers"][0]["text"], "sh -c true");
}

#[test]
fn s2_11_mistakes_are_shown_with_line_column_and_a_caret() {
    let world = World::new();
    world.write("stafette.toml", &format!("{ECHO}[[routes]]\nfrom = \"one\"\nto = \"two\"\n"));
    let said = world.run(&["check"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("stafette.toml:11:6") && said.out.contains("^^^^^"), "{said:?}");
    let json = world.run(&["check", "--json"]).json();
    assert_eq!(
        (&json["problems"][0]["line"], &json["problems"][0]["column"]),
        (&11.into(), &6.into())
    );
}

#[test]
fn s2_11_the_gate_checks_a_protocol_document() {
    let world = World::new();
    let document = |name: &str| repository().join("fixtures/gate").join(name).display().to_string();
    world.run(&["check", "--gate", &document("protocol.md")]).ok();
    let said = world.run(&["check", "--gate", "--json", &document("protocol-incomplete.md")]);
    assert_eq!((said.code, said.json()["ok"].as_bool()), (1, Some(false)));
}

#[test]
fn a_project_that_is_too_deep_for_a_socket_has_it_elsewhere() {
    let world = World::new();
    world.write("stafette.toml", ECHO);
    let temporary = world.home().display().to_string();
    let deep = world.home().join("deep".repeat(15)).display().to_string();
    let on = |words: &[&str]| {
        world.run_with(words, b"", &[("TMPDIR", &temporary), ("XDG_STATE_HOME", &deep)])
    };
    on(&["trust", "--yes"]).ok();
    on(&["run", "x"]).ok();
    let socket = on(&["state", "--json"]).ok().json()["socket"].as_str().map(str::to_owned);
    assert!(socket.is_some_and(|socket| !socket.starts_with(&deep)));
    on(&["down"]).ok();

    // Another user was first at the place for sockets.
    let user = std::os::unix::fs::MetadataExt::uid(&world.home().metadata().expect("a home"));
    let taken = world.home().join(format!("stafette-{user}"));
    std::fs::remove_dir_all(&taken).expect("it was there");
    std::fs::create_dir(&taken).expect("a folder");
    if std::os::unix::fs::chown(&taken, Some(user + 1), None).is_err() {
        return eprintln!("only root can give a folder away, so this is left out");
    }
    on(&["run", "x"]).ok();
    let socket = on(&["state", "--json"]).ok().json()["socket"].as_str().map(str::to_owned);
    let socket = socket.expect("a socket");
    assert!(socket.contains("/.cache/stafette-run/"), "{socket}");
    on(&["down"]).ok();
}

#[test]
fn doctor_names_what_is_missing_with_its_fix() {
    let world = World::new();
    let said = world.run(&["doctor", "--json"]).json();
    let project =
        said["findings"].as_array().expect("findings").iter().find(|f| f["name"] == "project");
    assert!(project.expect("a finding")["fix"].as_str().expect("a fix").contains("stafette init"));
    let world = World::workflow(&ECHO.replace("sh\", \"-c\", \"true", "no-such-agent"));
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("no-such-agent") && said.out.contains("fix:"), "{said:?}");
}

#[test]
fn completions_and_manual_pages_are_there() {
    let world = World::new();
    assert!(world.run(&["completions", "bash"]).ok().out.contains("_stafette"));
    world.run(&["man", "man"]).ok();
    assert!(world.read("man/stafette-run.1").contains("stafette"));
}
