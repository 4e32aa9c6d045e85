//! Commands whose profile says how to start and to read them: recorded streams stand in for the
//! programs.

use std::fs;
use std::path::Path;

use stafette_agents::profile::{Library, Profile};
use stafette_agents::{Job, Signal};
use stafette_core::workflow::Runner;
use stafette_core::{Failure, FailureKind, Millis, Unknown, Usage, Usd};
use stafette_testkit::program;

use crate::world::{World, failed, finished, run};

/// A program that notes its arguments and variables, and plays `stream` and ends with `status`.
fn playing(world: &World, profile: &str, stream: &str, status: i32) -> Job {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams").join(stream);
    fs::copy(recorded, world.work().join("stream")).unwrap();
    let script = format!(
        "#!/bin/sh\ncat > prompt\necho \"$@\" >> arguments\nenv > variables\ncat stream\nexit {status}\n"
    );
    let program = world.work().join(profile);
    program::write(&program, &script).unwrap();
    let mut profile = Library::built_in().get(profile).unwrap().clone();
    let exec = profile.exec.as_mut().unwrap();
    exec.command[0] = program.to_str().unwrap().to_owned();
    with(world, profile)
}

fn with(world: &World, profile: Profile) -> Job {
    let mut job = world.job(Runner::Exec, "");
    job.agent.command = Vec::new();
    job.agent.profile = Some(profile.name.clone());
    job.profile = Some(profile);
    job
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.work().join(name)).unwrap_or_default()
}

/// The next turn of the same agent.
fn next(job: &Job) -> Job {
    let mut job = job.clone();
    job.order.key.turn += 1;
    job
}

/// A usage whose cost was calculated from prices.
fn estimated(tokens: u64, micros: u64) -> Usage {
    Usage { estimated: Usd(micros), ..Usage::exactly(tokens, Usd(micros)) }
}

#[tokio::test]
async fn s5_06_the_streams_of_the_known_programs_become_handoffs_with_their_cost() {
    let unpriced = Unknown { tokens: 0, money: 1 };
    for (name, usage) in [
        ("claude", Usage::exactly(3160, Usd(17_800))),
        ("codex", estimated(3160, 6_600)),
        ("gemini", estimated(3160, 6_600)),
        ("qwen", Usage { unknown: unpriced, ..Usage::exactly(3160, Usd(0)) }),
        ("opencode", Usage::exactly(3160, Usd(5_600))),
        ("goose", Usage { unknown: unpriced, ..Usage::exactly(3160, Usd(0)) }),
    ] {
        let world = World::new();
        let job = playing(&world, name, &format!("{name}-tool.jsonl"), 0);
        let heard = run(job).await;
        let Some(Signal::Finished(result)) = heard.last() else { panic!("{name}: {heard:?}") };
        let [offer] = result.offers.as_slice() else { panic!("{name}: {result:?}") };
        assert_eq!((offer.to.as_str(), offer.summary.as_str()), ("reviewer", "auth is in"));
        assert!(result.bare, "{name}: a stream can be talked into anything");
        assert_eq!(result.usage, usage, "{name}");
        assert!(read(&world, "prompt").contains("Add user auth"), "{name}");
    }
}

#[tokio::test]
async fn b_01_the_next_turn_goes_on_with_the_programs_own_session_and_pays_once() {
    let id = "resume 00000000-0000-4000-8000-000000000001";
    for (name, first, words, usage) in [
        ("claude", "claude-text.jsonl", format!("--{id}"), Usage::exactly(1580, Usd(8900))),
        ("codex", "codex-tool.jsonl", id.to_owned(), estimated(1580, 3300)),
    ] {
        let world = World::new();
        let job = playing(&world, name, first, 0);
        finished(job.clone()).await;
        playing(&world, name, &format!("{name}-resume.jsonl"), 0);
        let result = finished(next(&job)).await;
        assert_eq!(result.usage, usage, "{name}");
        let arguments = read(&world, "arguments");
        let [new, resumed] = arguments.lines().collect::<Vec<_>>()[..] else { panic!() };
        assert!(!new.contains("resume") && resumed.contains(&words), "{arguments}");
        // Another agent of the run has its own.
        let mut other = next(&job);
        other.order.agent = "reviewer".parse().unwrap();
        finished(other).await;
        assert!(!read(&world, "arguments").lines().last().unwrap().contains("resume"));
    }
}

#[tokio::test]
async fn b_01_a_session_that_the_program_has_lost_is_forgotten() {
    let world = World::new();
    let job = playing(&world, "codex", "codex-text.jsonl", 0);
    finished(job.clone()).await;
    let lost = "#!/bin/sh\necho no such session >&2\nexit 1\n";
    program::write(&world.work().join("codex"), lost).unwrap();
    let failure = failed(next(&job)).await;
    assert_eq!(failure.kind, FailureKind::Recoverable);
    assert_eq!(failure.message, "exit status 1: no such session");
    playing(&world, "codex", "codex-text.jsonl", 0);
    finished(next(&next(&job))).await;
    assert!(!read(&world, "arguments").contains("resume"));
}

#[tokio::test]
async fn b_09_a_used_up_quota_is_told_with_its_reset_and_the_session_is_kept() {
    let world = World::new();
    let job = playing(&world, "codex", "codex-quota.jsonl", 1);
    let Failure { kind, message, until } = failed(job.clone()).await;
    assert_eq!(kind, FailureKind::Quota);
    assert!(message.contains("hit your usage limit") && until.is_some(), "{message} {until:?}");
    playing(&world, "codex", "codex-text.jsonl", 0);
    finished(next(&job)).await;
    assert!(read(&world, "arguments").lines().last().unwrap().contains("resume"));

    for name in ["claude", "gemini", "opencode"] {
        let world = World::new();
        let failure = failed(playing(&world, name, &format!("{name}-quota.jsonl"), 1)).await;
        assert_eq!(failure.kind, FailureKind::Quota, "{name}: {failure:?}");
    }

    // They exit with success.
    for (name, stream) in [("goose", "goose-quota.jsonl"), ("aider", "aider-quota.out")] {
        let world = World::new();
        let failure = failed(playing(&world, name, stream, 0)).await;
        assert_eq!(failure.kind, FailureKind::Quota, "{name}: {failure:?}");
    }
}

#[tokio::test]
async fn s5_07_a_missing_login_is_for_a_person() {
    for name in ["claude", "codex"] {
        let world = World::new();
        let failure = failed(playing(&world, name, &format!("{name}-login.jsonl"), 1)).await;
        assert_eq!(failure.kind, FailureKind::Fatal, "{name}: {failure:?}");
    }
}

#[tokio::test]
async fn b_23_a_program_that_tries_a_refused_key_again_and_again_is_ended() {
    let world = World::new();
    let job = playing(&world, "claude", "claude-login.jsonl", 1);
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":3,"error_status":401,"error":"authentication_failed"}"#;
    let tries = format!("#!/bin/sh\ncat > prompt\necho '{retry}'\nexec sleep 600\n");
    program::write(&world.work().join("claude"), &tries).unwrap();
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Fatal, "{failure:?}");
    assert!(failure.message.contains("refuses the key"), "{failure:?}");
}

#[tokio::test]
async fn b_09_a_program_that_tries_again_and_again_at_a_limit_is_ended_and_parked() {
    let world = World::new();
    let job = playing(&world, "qwen", "qwen-tool.jsonl", 1);
    // The first one is about a broken connection.
    let retries = r#"{"type":"system","subtype":"retry","data":{"reason":"retry"}}
{"type":"system","subtype":"retry","data":{"reason":"retry","attempt":1,"maxRetries":10,"delayMs":60000}}"#;
    let tries = format!("#!/bin/sh\ncat > prompt\necho '{retries}'\nexec sleep 600\n");
    program::write(&world.work().join("qwen"), &tries).unwrap();
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Quota, "{failure:?}");
    assert!(failure.message.contains("refuses further requests"), "{failure:?}");
}

#[tokio::test]
async fn b_23_a_program_that_stalled_has_stalled_whatever_it_says_to_the_interruption() {
    let world = World::new();
    let mut job = playing(&world, "claude", "claude-login.jsonl", 1);
    job.agent.stall = Some(Millis(300));
    let last = r#"{"type":"result","is_error":true,"subtype":"error_during_execution"}"#;
    let hangs = format!(
        "#!/bin/sh\ncat > prompt\ntrap \"echo '{}'; exit 1\" INT\nsleep 600 &\nwait $!\n",
        last.replace('"', "\\\"")
    );
    program::write(&world.work().join("claude"), &hangs).unwrap();
    let failure = failed(job).await;
    assert!(failure.message.starts_with("said nothing for 0.3 s"), "{failure:?}");
}

#[tokio::test]
async fn b_09_talk_about_quotas_is_no_quota() {
    let world = World::new();
    let mut job = playing(&world, "codex", "codex-text.jsonl", 0);
    let talk = r#"{"type":"item.completed","item":{"type":"agent_message","text":"You've hit your usage limit, says the page."}}"#;
    fs::write(world.work().join("stream"), format!("{talk}\n")).unwrap();
    let result = finished(job.clone()).await;
    assert!(result.response.summary.contains("says the page"));
    let talks = format!("#!/bin/sh\necho '{}'\nexit 3\n", talk.replace('\'', ""));
    program::write(&world.work().join("codex"), &talks).unwrap();
    job.order.key.turn += 1;
    assert_eq!(failed(job).await.kind, FailureKind::Recoverable);
}

#[tokio::test]
async fn b_17_a_profile_says_which_variables_its_program_sees() {
    let world = World::new();
    let mut job = playing(&world, "claude", "claude-text.jsonl", 0);
    let profile = job.profile.as_mut().unwrap();
    profile.env.pass = vec!["CARGO_PKG_NAME".into()];
    profile.exec.as_mut().unwrap().env = [("EXTRA".to_owned(), "1".to_owned())].into();
    finished(job).await;
    let seen = read(&world, "variables");
    for line in ["CARGO_PKG_NAME=stafette-agents", "EXTRA=1", "DISABLE_AUTOUPDATER=1"] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
    assert!(!seen.contains("CARGO_PKG_VERSION"), "{seen}");
}

#[tokio::test]
async fn b_13_what_a_program_always_denies_is_reported_once_for_each_run() {
    let world = World::new();
    let denies = |signal: &Signal| match signal {
        Signal::Alert { code, message } if code == "PERMISSION_DENIED" => Some(message.clone()),
        _ => None,
    };
    let mut job = playing(&world, "gemini", "claude-text.jsonl", 0);
    let told: Vec<String> = run(job.clone()).await.iter().filter_map(denies).collect();
    let once = "is always denied commands without a terminal: see `permissions` of the agent";
    assert_eq!(told, [once]);
    let run_id = job.order.key.run;
    job.order.key = format!("{run_id}/h2/1.1").parse().unwrap();
    let told: Vec<String> = run(job).await.iter().filter_map(denies).collect();
    assert_eq!(told, [""; 0]);
}

#[tokio::test]
async fn b_01_the_notes_about_the_sessions_of_a_run_go_with_it() {
    let world = World::new();
    // A command, and a program that speaks a protocol.
    run(playing(&world, "claude", "claude-text.jsonl", 0)).await;
    let job = world.job(Runner::Acp, "{ say = \"hello\" }");
    run(job.clone()).await;
    let sessions = job.scratch.join("sessions");
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 2);
    let (ended, other) = (job.order.key.run, "0".repeat(32).parse().unwrap());
    stafette_agents::a2a::leave(&job.scratch, other).await;
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 2);
    stafette_agents::a2a::leave(&job.scratch, ended).await;
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 0);
}

#[tokio::test]
async fn b_13_only_so_many_denied_tools_are_named() {
    let world = World::new();
    let mut job = playing(&world, "claude", "claude-text.jsonl", 0);
    job.agent.permissions = stafette_core::workflow::PermissionLevel::Ask;
    let tools: Vec<String> = (0..1000).map(|n| format!("{{\"tool_name\":\"t{n}\"}}")).collect();
    let denials = format!(
        "{{\"type\":\"result\",\"result\":\"done\",\"permission_denials\":[{}]}}\n",
        tools.join(",")
    );
    fs::write(world.work().join("stream"), denials).unwrap();
    let told = run(job).await;
    let named = told.iter().find_map(|signal| match signal {
        Signal::Alert { message, .. } => Some(message.split(", ").count()),
        _ => None,
    });
    assert_eq!(named, Some(20), "{told:?}");
}

#[test]
fn b_20_what_is_looked_at_before_a_turn_is_what_was_trusted() {
    let world = World::new();
    let text = r#"
        name = "odd"
        title = "an odd agent"
        detect = { program = "sh" }
        exec = { command = ["sh", "{resume}", "{permissions}"], resume = ["{session}"] }
        permissions.edits.arguments = ["edits.sh"]
    "#;
    let profile = Profile::parse(text).unwrap();
    let mut job = with(&world, profile.clone());
    job.agent.script = None;
    assert_eq!(job.command(), ["sh", "edits.sh"]);
    assert_eq!(Some(job.command()), profile.words_of(&job.agent));
}

#[tokio::test]
async fn a_user_brings_an_agent_by_a_file() {
    let world = World::new();
    let folder = world.work().join("profiles");
    fs::create_dir_all(&folder).unwrap();
    let text = r#"
        name = "parrot"
        title = "A parrot"
        [detect]
        program = "sh"
        [exec]
        command = ["sh", "-c", "cat reply", "{resume}"]
        output = "json"
        resume = ["{session}"]
        [[stream.rules]]
        when = { "/ok" = true }
        emit = "final"
        text = "/said"
        input = ["/tokens"]
        [price]
        model = "parrot"
        models = { parrot = { input = 1000, output = 0 } }
    "#;
    fs::write(folder.join("parrot.toml"), text).unwrap();
    let library = Library::with(&[folder]);
    assert_eq!(library.broken(), []);
    let reply = "{\n  \"ok\": true, \"tokens\": 50,\n  \"said\": \"Pretty\"\n}\n";
    fs::write(world.work().join("reply"), reply).unwrap();
    let result = finished(with(&world, library.get("parrot").unwrap().clone())).await;
    assert_eq!(result.response.summary, "Pretty");
    assert_eq!(result.usage, estimated(50, 50_000));
}

#[tokio::test]
async fn a_profile_that_is_not_there_or_of_no_use_says_what_to_do() {
    let world = World::new();
    let mut job = with(&world, Library::built_in().get("shell").unwrap().clone());
    let failure = failed(job.clone()).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.contains("`shell` has no [exec]: give builder a command"));
    job.profile = None;
    let failure = failed(job.clone()).await;
    assert!(failure.message.contains("there is no profile `shell`"), "{}", failure.message);
}
