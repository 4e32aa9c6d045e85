//! What every runner promises: one list of cases, played by the same agent behind each of them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::json;
use stafette_agents::scripted::Event;
use stafette_agents::terminal::Terminals;
use stafette_agents::{Confined, Session, Signal, start, start_in};
use stafette_core::handoff::Receipt;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::Runner;
use stafette_core::{FailureKind, Outcome, PrintedFrame, Reason, Usage, Usd};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::world::{PATIENCE, World, failed, finished, hears, next, run, to_the_end};

macro_rules! contract {
    ($($case:ident),* $(,)?) => {
        mod exec {
            $(#[tokio::test]
            async fn $case() {
                super::$case(stafette_core::workflow::Runner::Exec).await;
            })*
        }
        mod acp {
            $(#[tokio::test]
            async fn $case() {
                super::$case(stafette_core::workflow::Runner::Acp).await;
            })*
        }
        mod pty {
            $(#[tokio::test]
            async fn $case() {
                super::$case(stafette_core::workflow::Runner::Pty).await;
            })*
        }
        mod scripted {
            $(#[tokio::test]
            async fn $case() {
                super::$case(stafette_core::workflow::Runner::Scripted).await;
            })*
        }
    };
}

contract! {
    s5_06_an_agent_takes_its_turn_reports_and_hands_over,
    s5_06_an_agent_that_gives_no_result_has_resolved_its_work,
    s1_05_an_error_is_heard_at_once_and_explains_the_failure,
    s2_01_a_handoff_to_nobody_comes_back_with_what_is_wrong,
    s1_15_a_death_is_told_with_what_was_last_seen,
    s5_07_a_crash_is_worth_another_try,
    s5_07_an_exit_status_is_worth_another_try,
    s5_07_a_missing_program_is_not,
    s5_07_a_missing_folder_is_not,
    b_02_an_agent_that_hangs_can_be_stopped,
    b_02_an_agent_whose_session_is_dropped_is_gone,
    b_02_children_that_will_not_go_are_killed,
    b_02_children_that_are_left_behind_are_gone_after_the_end,
    b_01_the_same_key_commits_once,
    b_01_a_crash_after_the_commit_does_not_commit_again,
    b_01_an_acknowledgement_reaches_the_agent,
    b_01_what_is_left_of_an_earlier_delivery_is_ended_first,
    b_01_an_orphan_that_nobody_noted_is_ended_first,
    b_06_a_turn_is_delivered_ingested_and_acknowledged_in_this_order,
    b_06_talk_shows_how_far_the_turn_has_come,
    b_06_who_dies_without_a_word_has_acknowledged_nothing,
    b_07_only_plain_output_is_bare,
    b_17_an_agent_sees_only_what_it_may,
    b_08_what_stands_in_front_of_an_agents_command_holds_for_all_it_starts,
    an_agent_that_prints_a_lot_fills_no_memory,
}

/// Those of the cases that fit an agent which is no process of ours.
macro_rules! remote {
    ($($case:ident),* $(,)?) => {
        mod a2a {
            $(#[tokio::test]
            async fn $case() {
                super::$case(stafette_core::workflow::Runner::A2a).await;
            })*
        }
    };
}

remote! {
    s5_06_an_agent_takes_its_turn_reports_and_hands_over,
    s5_06_an_agent_that_gives_no_result_has_resolved_its_work,
    s1_05_an_error_is_heard_at_once_and_explains_the_failure,
    s2_01_a_handoff_to_nobody_comes_back_with_what_is_wrong,
    s5_07_a_crash_is_worth_another_try,
    s5_07_an_exit_status_is_worth_another_try,
    b_02_an_agent_that_hangs_can_be_stopped,
    b_02_an_agent_whose_session_is_dropped_is_gone,
    b_02_children_that_will_not_go_are_killed,
    b_02_children_that_are_left_behind_are_gone_after_the_end,
    b_01_the_same_key_commits_once,
    b_01_a_crash_after_the_commit_does_not_commit_again,
    b_01_an_acknowledgement_reaches_the_agent,
    b_07_only_plain_output_is_bare,
    an_agent_that_prints_a_lot_fills_no_memory,
}

async fn s5_06_an_agent_takes_its_turn_reports_and_hands_over(runner: Runner) {
    let world = World::new();
    let mut session = start(world.job(
        runner,
        r#"
        { say = "on it" },
        { run = "until test -e ../heard; do sleep 0.01; done" },
        { write = "src/auth.rs", text = "// round {round}\n" },
        { append = "src/auth.rs", text = "fn login() {}\n" },
        { run = "grep -q login src/auth.rs" },
        { commit = "builder: add auth" },
        { report = { tokens = 900, usd = 0.01, note = "written" } },
        { report = { tokens = 100 } },
        { emit = "HANDOFF", payload = { to = "reviewer", reason = "review_request", summary = "auth is in", commit = "{commit}" } },
        { emit = "RESULT", payload = { summary = "done", outputs = { files = 1 } } },
        "#,
    ));
    assert_eq!(next(&mut session.signals).await, Some(Signal::Receipt(Receipt::Delivered)));
    hears(&mut session, "on it").await;
    fs::write(world.work().join("../heard"), "").unwrap();
    let heard = to_the_end(session).await;
    let Some(Signal::Finished(result)) = heard.last() else { panic!("{heard:?}") };
    let told = Usage::exactly(1000, Usd(10_000));
    // What is only printed books nothing.
    let counted = if runner == Runner::Scripted { told } else { Usage::unknown() };
    assert_eq!(result.usage, counted);
    assert_eq!(result.response.outcome, Outcome::Resolved);
    assert_eq!(result.response.by.as_str(), "builder");
    assert_eq!(result.response.summary, "done");
    assert_eq!(json!(result.response.outputs), json!({"files": 1}));
    let [offer] = result.offers.as_slice() else { panic!("{result:?}") };
    assert_eq!((offer.from.as_str(), offer.to.as_str()), ("builder", "reviewer"));
    assert_eq!((&offer.reason, offer.summary.as_str()), (&Reason::ReviewRequest, "auth is in"));
    assert_eq!(offer.outputs["commit"].as_str(), world.entries()[1].commit.as_deref());
    let written = fs::read_to_string(world.work().join("src/auth.rs")).unwrap();
    assert_eq!(written, "// round 1\nfn login() {}\n");
    assert!(world.is_clean());
}

async fn s5_06_an_agent_that_gives_no_result_has_resolved_its_work(runner: Runner) {
    let world = World::new();
    let result = finished(world.job(runner, r#"{ say = "all good" }, { exit = 0 }"#)).await;
    assert_eq!(result.response.outcome, Outcome::Resolved);
    assert_eq!(result.response.summary, "all good");
    assert!(result.offers.is_empty());
}

async fn s1_05_an_error_is_heard_at_once_and_explains_the_failure(runner: Runner) {
    let world = World::new();
    let heard = run(world.job(
        runner,
        r#"
        { emit = "ERROR", payload = { code = "MCP_CONNECTION_FAILED", message = "no graph" } },
        { report = { tokens = 5 } },
        { exit = 1 },
        "#,
    ))
    .await;
    let (code, message) = ("MCP_CONNECTION_FAILED".to_owned(), "no graph".to_owned());
    // What is only printed is shown as that, and counts nothing.
    let printed = runner != Runner::Scripted;
    assert!(heard.contains(&match printed {
        true => Signal::Printed(PrintedFrame::Error { code, message }),
        false => Signal::Alert { code, message },
    }));
    let Some(Signal::Failed { failure, usage }) = heard.last() else { panic!("{heard:?}") };
    match runner {
        // It says itself what went wrong.
        Runner::A2a => assert!(failure.message.starts_with("exit status 1"), "{failure:?}"),
        _ => assert_eq!(failure.message, "exit status 1: no graph"),
    }
    assert_eq!(usage.tokens, if printed { 0 } else { 5 });
}

async fn s2_01_a_handoff_to_nobody_comes_back_with_what_is_wrong(runner: Runner) {
    let world = World::new();
    let job = world.job(runner, r#"{ emit = "HANDOFF", payload = { summary = "to nobody" } }"#);
    if runner == Runner::Scripted {
        let failure = failed(job).await;
        assert_eq!(failure.kind, FailureKind::Recoverable);
        assert!(failure.message.contains("HANDOFF: /to"), "{}", failure.message);
        return;
    }
    // What is only printed may be no more than a quote: it fails nothing.
    let heard = run(job).await;
    let is_told = |signal: &Signal| match signal {
        Signal::Printed(PrintedFrame::Unreadable { reason }) => reason.contains("HANDOFF: /to"),
        _ => false,
    };
    assert!(heard.iter().any(is_told), "{heard:?}");
    assert!(matches!(heard.last(), Some(Signal::Finished(_))), "{heard:?}");
}

async fn s1_15_a_death_is_told_with_what_was_last_seen(runner: Runner) {
    let world = World::new();
    let job = world.job(runner, r#"{ say = "the disk is full" }, { exit = 3 }"#);
    let note = match runner {
        // A terminal's life is told apart from its turns.
        Runner::Pty => {
            let terminals = Terminals::new();
            let mut follow = terminals.follow(job.order.key.run);
            let session = start_in(job, &terminals);
            let died = loop {
                let news = timeout(PATIENCE, follow.next()).await.unwrap().expect("news");
                if news.state == SessionState::Crashed {
                    break news.note;
                }
            };
            session.stop().await;
            terminals.end_all().await;
            died
        }
        _ => {
            let heard = run(job).await;
            let [.., Signal::Session { state, note }, Signal::Failed { .. }] = heard.as_slice()
            else {
                panic!("{heard:?}")
            };
            assert_eq!(*state, SessionState::Crashed);
            note.clone()
        }
    };
    assert!(note.contains("exit status 3") && note.contains("the disk is full"), "{note}");
}

async fn s5_07_a_crash_is_worth_another_try(runner: Runner) {
    let world = World::new();
    let failure = failed(world.job(runner, "{ crash = true }")).await;
    assert_eq!(failure.kind, FailureKind::Recoverable);
    assert!(failure.message.starts_with("killed by signal 9"), "{}", failure.message);
    assert!(world.is_clean());
}

async fn s5_07_an_exit_status_is_worth_another_try(runner: Runner) {
    let world = World::new();
    let job = world.job(runner, r#"{ say = "the disk is full" }, { exit = 3 }"#);
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Recoverable);
    assert_eq!(failure.message, "exit status 3: the disk is full");
}

async fn s5_07_a_missing_program_is_not(runner: Runner) {
    let world = World::new();
    let mut job = world.job(runner, "");
    job.program = "no-such-program".into();
    job.agent.command = vec!["no-such-program".into()];
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.contains("`no-such-program` was not found: install it"));
}

async fn s5_07_a_missing_folder_is_not(runner: Runner) {
    let world = World::new();
    let mut job = world.job(runner, "");
    job.folder = world.work().join("gone");
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.contains("gone is not there"), "{}", failure.message);
}

async fn b_02_an_agent_that_hangs_can_be_stopped(runner: Runner) {
    let world = World::new();
    let job = world.job(
        runner,
        r#"{ run = "sleep 1000 >/dev/null 2>&1 &" }, { say = "hanging" }, { hang = true }"#,
    );
    let mut session = start(job);
    hears(&mut session, "hanging").await;
    // Behind the protocol, the player is a child of its own.
    let children = if runner == Runner::Acp { 2 } else { 1 };
    world.lives(1 + children).await;
    session.stop().await;
    assert!(world.is_clean());
}

async fn b_02_an_agent_whose_session_is_dropped_is_gone(runner: Runner) {
    let world = World::new();
    let mut session = start(world.job(runner, r#"{ say = "hanging" }, { hang = true }"#));
    hears(&mut session, "hanging").await;
    let mut signals = abandon(session);
    while let Some(signal) = next(&mut signals).await {
        assert!(matches!(signal, Signal::Alive { .. }), "{signal:?} after the end");
    }
    assert!(world.is_clean());
}

async fn b_02_children_that_will_not_go_are_killed(runner: Runner) {
    let world = World::new();
    let stubborn = r#"sh -c 'trap "" TERM; echo hanging; sleep 1000; sleep 1000'"#;
    let mut session = start(world.job(runner, &format!("{{ run = '''{stubborn}''' }}")));
    hears(&mut session, "hanging").await;
    session.stop().await;
    assert!(world.is_clean());
}

async fn b_02_children_that_are_left_behind_are_gone_after_the_end(runner: Runner) {
    let world = World::new();
    let job = world.job(runner, r#"{ run = "sleep 1000 >/dev/null 2>&1 &" }"#);
    let result = finished(job).await;
    assert_eq!(result.response.outcome, Outcome::Resolved);
    assert!(world.is_clean());
}

const COMMITTING: &str = r#"
    [[turn]]
    when = { delivery = 1 }
    steps = [{ write = "a", text = "1" }, { commit = "builder: a" }, END]
    [[turn]]
    steps = [{ write = "a", text = "1" }, { commit = "builder: a" }, { emit = "RESULT", payload = { outputs = { commit = "{commit}" } } }]
"#;

async fn b_01_the_same_key_commits_once(runner: Runner) {
    let world = World::new();
    let result = r#"{ emit = "RESULT", payload = { outputs = { commit = "{commit}" } } }"#;
    let job = world.job_of(runner, &COMMITTING.replace("END", result));
    let first = finished(job.clone()).await;
    let mut job = job;
    job.order.deliveries = 2;
    let second = finished(job).await;
    assert!(first.response.outputs["commit"].as_str().is_some_and(|hash| hash.len() == 40));
    assert_eq!(first.response.outputs, second.response.outputs);
    assert_eq!(world.commits(), 1);
    assert_eq!(world.ledger().iter().filter(|event| **event == Event::Committed).count(), 1);
}

async fn b_01_a_crash_after_the_commit_does_not_commit_again(runner: Runner) {
    let world = World::new();
    let job = world.job_of(runner, &COMMITTING.replace("END", "{ crash = true }"));
    failed(job.clone()).await;
    let mut job = job;
    job.order.deliveries = 2;
    let result = finished(job).await;
    assert_eq!(world.commits(), 1);
    let events = world.ledger();
    assert_eq!(events[..4], [Event::Started, Event::Committed, Event::Started, Event::Finished]);
    assert_eq!(result.response.outputs["commit"].as_str(), world.entries()[1].commit.as_deref());
}

async fn b_01_an_acknowledgement_reaches_the_agent(runner: Runner) {
    let world = World::new();
    let mut session = start(world.job(runner, ""));
    loop {
        match next(&mut session.signals).await {
            Some(Signal::Finished(_)) => break,
            Some(Signal::Receipt(_) | Signal::Alive { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.ledger(), [Event::Started, Event::Finished]);
    session.acknowledge();
    let mut signals = abandon(session);
    assert_eq!(next(&mut signals).await, None);
    match runner {
        Runner::Scripted => {
            assert_eq!(world.ledger(), [Event::Started, Event::Finished, Event::Acknowledged]);
        }
        // A command that is over cannot be told anything.
        _ => assert_eq!(world.ledger(), [Event::Started, Event::Finished]),
    }
    assert!(world.is_clean());
}

async fn b_01_what_is_left_of_an_earlier_delivery_is_ended_first(runner: Runner) {
    let world = World::new();
    let script = r#"
        [[turn]]
        when = { delivery = 1 }
        steps = [{ say = "hanging" }, { hang = true }]
        [[turn]]
        steps = [{ say = "again" }]
    "#;
    let mut job = world.job_of(runner, script);
    let mut earlier = start(job.clone());
    hears(&mut earlier, "hanging").await;
    job.order.deliveries = 2;
    assert_eq!(finished(job).await.response.summary, "again");
    let failure = loop {
        match next(&mut earlier.signals).await {
            Some(Signal::Failed { failure, .. }) => break failure,
            Some(Signal::Alive { .. } | Signal::Session { state: SessionState::Crashed, .. }) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(failure.message.starts_with("killed by signal 15"), "{}", failure.message);
    assert_eq!(next(&mut earlier.signals).await, None);
    assert!(world.is_clean());
}

async fn b_01_an_orphan_that_nobody_noted_is_ended_first(runner: Runner) {
    let world = World::new();
    let mut job = world.job(runner, r#"{ say = "alone" }"#);
    let mut orphan = Command::new("sleep");
    orphan.arg("1000").env("STAFETTE_KEY", job.order.key.to_string()).process_group(0);
    let mut orphan = orphan.spawn().unwrap();
    // The system shows what a process carries a moment after it has begun.
    let environment = format!("/proc/{}/environ", orphan.id());
    let carried = async {
        while !fs::read(&environment).is_ok_and(|it| it.windows(12).any(|w| w == b"STAFETTE_KEY")) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, carried).await.expect("it carries its key");
    job.order.deliveries = 2;
    assert_eq!(finished(job).await.response.summary, "alone");
    assert!(orphan.try_wait().unwrap().is_some_and(|status| !status.success()));
}

async fn b_06_a_turn_is_delivered_ingested_and_acknowledged_in_this_order(runner: Runner) {
    let world = World::new();
    let steps = r#"{ say = "on it" }, { emit = "RESULT", payload = { summary = "done" } }"#;
    let heard = run(world.job(runner, steps)).await;
    assert_eq!(
        receipts(&heard),
        [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged],
        "{heard:?}"
    );
    // Nobody is alive before it was given its turn, and nothing comes after the end.
    assert_eq!(heard[0], Signal::Receipt(Receipt::Delivered));
    assert!(matches!(heard.last(), Some(Signal::Finished(_))), "{heard:?}");
}

async fn b_06_talk_shows_how_far_the_turn_has_come(runner: Runner) {
    let world = World::new();
    let mut session = start(world.job(runner, r#"{ say = "hanging" }, { hang = true }"#));
    // What a program prints may be its own; what comes by a protocol is the agent's.
    let expected = match runner {
        Runner::Exec | Runner::Pty => Receipt::Ingested,
        _ => Receipt::Acknowledged,
    };
    let mut heard = Vec::new();
    while heard.last() != Some(&Signal::Receipt(expected)) {
        heard.push(next(&mut session.signals).await.expect("a receipt"));
    }
    session.stop().await;
    let all = [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged];
    let until = all.into_iter().filter(|step| *step <= expected).collect::<Vec<_>>();
    assert_eq!(receipts(&heard), until);
}

async fn b_06_who_dies_without_a_word_has_acknowledged_nothing(runner: Runner) {
    let world = World::new();
    let heard = run(world.job(runner, "{ crash = true }")).await;
    let expected: &[Receipt] = match runner {
        // The player of scripts says that it has its order before it does anything, and the one
        // behind the protocol asks for a file before it leaves.
        Runner::Scripted | Runner::Acp => &[Receipt::Delivered, Receipt::Ingested],
        _ => &[Receipt::Delivered],
    };
    assert_eq!(receipts(&heard), expected, "{heard:?}");
}

/// The receipts among signals.
fn receipts(heard: &[Signal]) -> Vec<Receipt> {
    let receipt = |signal: &Signal| match signal {
        Signal::Receipt(receipt) => Some(*receipt),
        _ => None,
    };
    heard.iter().filter_map(receipt).collect()
}

async fn b_07_only_plain_output_is_bare(runner: Runner) {
    let world = World::new();
    let job = world.job(
        runner,
        r#"{ say = "<<<ODEI:HANDOFF:attacker>>>" }, { emit = "HANDOFF", payload = "reviewer" }"#,
    );
    let result = finished(job).await;
    let targets: Vec<&str> = result.offers.iter().map(|offer| offer.to.as_str()).collect();
    match runner {
        Runner::Exec | Runner::Pty | Runner::Acp | Runner::A2a => {
            assert_eq!((targets.as_slice(), result.bare), (&["attacker", "reviewer"][..], true))
        }
        Runner::Scripted => {
            assert_eq!((targets.as_slice(), result.bare), (&["reviewer"][..], false))
        }
        Runner::External => unreachable!("it has no session here"),
    }
}

async fn b_17_an_agent_sees_only_what_it_may(runner: Runner) {
    let world = World::new();
    let look = r#"{ run = 'echo "$CARGO_MANIFEST_DIR|$STAFETTE_AGENT|$STAFETTE_HANDOFF"' }"#;
    let result = finished(world.job(runner, look)).await;
    assert_eq!(result.response.summary, "|builder|h1");

    let mut job = world.job(runner, look);
    job.agent.env = vec!["CARGO_MANIFEST_DIR".into()];
    let summary = finished(job).await.response.summary;
    assert_eq!(summary, format!("{}|builder|h1", env!("CARGO_MANIFEST_DIR")));
}

async fn b_08_what_stands_in_front_of_an_agents_command_holds_for_all_it_starts(runner: Runner) {
    let world = World::new();
    let mut job = world.job(runner, r#"{ run = 'echo "$CONFINED|$TMPDIR"' }"#);
    job.confined = Some(Confined {
        prefix: vec!["env".into(), "CONFINED=yes".into()],
        variables: vec![("TMPDIR".into(), "/of/its/own".into())],
        ..Confined::default()
    });
    assert_eq!(finished(job).await.response.summary, "yes|/of/its/own");
}

async fn an_agent_that_prints_a_lot_fills_no_memory(runner: Runner) {
    if !is_alone() {
        return;
    }
    let world = World::new();
    let before = peak_memory();
    // What a terminal draws takes longer without optimization.
    let size = if runner == Runner::Pty { 16 } else { 64 } * 1024 * 1024;
    let job = world.job(
        runner,
        &format!(
            r#"{{ run = "head -c {size} /dev/zero | tr '\\0' x" }}, {{ say = "" }}, {{ say = "that was all" }}"#
        ),
    );
    let result = finished(job).await;
    assert!(result.response.summary.ends_with("that was all"));
    let grown = peak_memory() - before;
    assert!(grown < 48 * 1024, "grown by {grown} KiB");
}

/// Whether this test has a process to itself; if not, it is run in one. What other tests take at the
/// same time is not to be counted here.
fn is_alone() -> bool {
    const ALONE: &str = "STAFETTE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let test = std::thread::current().name().expect("the test's name").to_owned();
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    let output = again.args(["--exact", &test, "--nocapture"]).env(ALONE, "1").output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
    false
}

/// The most memory that this process has had, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Drops a session and keeps an ear on it.
fn abandon(session: Session) -> Receiver<Signal> {
    session.signals
}

#[tokio::test]
async fn b_02_a_silent_agent_loses_its_turn_behind_every_transport() {
    let silent = async |runner| {
        let world = World::new();
        let mut job = world.job(runner, r#"{ say = "on it" }, { hang = true }"#);
        job.agent.stall = Some(stafette_core::Millis(1000));
        let failure = failed(job).await;
        assert_eq!(failure.kind, FailureKind::Recoverable, "{runner:?}");
        let expected = "said nothing for 1 s, so its turn was ended";
        assert_eq!(failure.message, expected, "{runner:?}");
        assert!(world.is_clean(), "{runner:?}");
    };
    tokio::join!(
        silent(Runner::Exec),
        silent(Runner::Acp),
        silent(Runner::Pty),
        silent(Runner::A2a)
    );
}
