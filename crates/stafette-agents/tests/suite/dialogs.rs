//! What programs ask on their screens, and how they are answered.

use std::fs;
use std::time::Duration;

use stafette_agents::profile::Profile;
use stafette_agents::terminal::{Setup, Terminals};
use stafette_agents::{Job, Session, Signal, start_in};
use stafette_core::TurnResult;
use stafette_core::handoff::Receipt;
use stafette_core::workflow::Runner;

use tokio::time::timeout;

use crate::world::{PATIENCE, World, next};

/// Draws a menu of two options and moves its mark with the arrows, until Enter; `$at` is the choice.
const MENU: &str = r#"
    stty raw -echo; at=1; esc=$(printf '\033')
    draw() { printf '\033[H\033[2J%s\r\n\r\n' "$1"
        for i in 1 2; do [ $i = $at ] && mark='>' || mark=' '; eval "printf '%s %s. %s\r\n' \"\$mark\" $i \"\$option$i\""; done; }
    menu() { at=1; draw "$1"; while :; do
        key=$(dd bs=3 count=1 2>/dev/null | tr '\r' 'E'); case "$key" in
            *B) at=2; draw "$1";; *A) at=1; draw "$1";; E) return;; esac; done; }
"#;

/// Shows an empty composer, reads the pasted order up to its last line and then Enter.
const COMPOSER: &str = r#"
    compose() { printf '\033[H\033[2J\033[?2004h$ what next?'; text=; while :; do
        text="$text$(dd bs=4096 count=1 2>/dev/null)"; case "$text" in *"done twice."*) break;; esac; done
        printf '\033[H\033[2J$ [Pasted text]'; }
    enter() { dd bs=1 count=1 >/dev/null 2>&1; }
    finish() { printf '\033[H\033[2J<<<ODEI:RESULT:%s>>>\r\n\r\n$ what next?' "$1"; sleep 1000; }
"#;

fn job(world: &World, script: &str) -> Job {
    let profile = r#"
        name = "odd"
        title = "an odd agent"
        detect = { program = "sh" }
        [pty]
        command = ["sh"]
        ready = ["what next?"]
        busy = ["esc to interrupt"]
        asks = ["may i"]
        composer = "$"
        [[pty.dialogs]]
        shows = ["is this folder trusted?"]
        choose = "yes"
    "#;
    let mut job = world.job(Runner::Pty, "");
    let script = format!("{MENU}{COMPOSER}{script}");
    job.agent.command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    job.profile = Some(Profile::parse(profile).unwrap());
    job.agent.profile = Some("odd".into());
    job.ready_timeout = Some(Duration::from_millis(1));
    job
}

fn terminals() -> Terminals {
    Terminals::new().with_setup(Setup { quiet: Duration::from_millis(300), ..Setup::default() })
}

/// The question that comes next, with its options.
async fn asked(session: &mut Session) -> (String, String, Vec<String>) {
    loop {
        match next(&mut session.signals).await {
            Some(Signal::Asks { id, title, options, .. }) => return (id, title, options),
            Some(Signal::Finished(_) | Signal::Failed { .. }) | None => panic!("it did not ask"),
            Some(_) => {}
        }
    }
}

async fn finished(session: &mut Session) -> TurnResult {
    loop {
        match next(&mut session.signals).await {
            Some(Signal::Finished(result)) => return *result,
            Some(Signal::Failed { failure, .. }) => panic!("{failure:?}"),
            Some(_) => {}
            None => panic!("no end"),
        }
    }
}

#[tokio::test]
async fn b_23_a_dialog_that_the_profile_knows_is_answered_by_its_option_wherever_that_stands() {
    let world = World::new();
    let terminals = terminals();
    let script = "option1='No, exit'; option2='Yes, I trust it'; menu 'Is this folder trusted?'; \
                  [ $at = 2 ] || exit 1; compose; enter; finish trusted";
    let mut job = job(&world, script);
    // A person is asked only after a time that nobody waits for.
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job, &terminals);
    let result = finished(&mut session).await;
    assert_eq!(result.response.summary, "trusted");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_13_a_terminals_permission_prompt_is_answered_from_the_inbox() {
    let world = World::new();
    let terminals = terminals();
    let script = "compose; enter; option1='Yes'; option2='No'; menu 'May I run the tests?'; \
                  echo $at > chosen; finish asked";
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job, &terminals);
    let (id, title, options) = asked(&mut session).await;
    assert_eq!(
        (title.as_str(), options),
        ("May I run the tests?", vec!["Yes".into(), "No".into()])
    );
    assert!(session.reply(&id, "No"));
    assert_eq!(finished(&mut session).await.response.summary, "asked");
    assert_eq!(fs::read_to_string(world.work().join("chosen")).unwrap(), "2\n");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_13_a_question_with_the_words_of_a_dialog_is_for_a_person_once_the_agent_has_written() {
    let world = World::new();
    let terminals = terminals();
    // In the turn, and again before the next one.
    let script = "compose; enter; printf '\\033[H\\033[2Jesc to interrupt'; \
                  until [ -e seen ]; do sleep 0.1; done; \
                  option1='Yes'; option2='No'; menu 'grep -r \"Is this folder trusted?\" .'; \
                  echo $at > first; printf '\\033[H\\033[2J<<<ODEI:RESULT:once>>>\\r\\n\\r\\n$ what next?'; \
                  until [ -e go ]; do sleep 0.1; done; menu 'echo Is this folder trusted?'; echo $at > second; \
                  compose; enter; finish twice";
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job.clone(), &terminals);
    while next(&mut session.signals).await.expect("a sign") != Signal::Receipt(Receipt::Ingested) {}
    fs::write(world.work().join("seen"), "").unwrap();
    let (id, ..) = asked(&mut session).await;
    assert!(session.reply(&id, "No"));
    assert_eq!(finished(&mut session).await.response.summary, "once");
    assert_eq!(fs::read_to_string(world.work().join("first")).unwrap(), "2\n");

    fs::write(world.work().join("go"), "").unwrap();
    let terminal = terminals.get(job.order.key.run, &job.order.agent).unwrap();
    let mut changes = terminal.changes();
    while !terminal.text().join("\n").contains("2. No") {
        timeout(PATIENCE, changes.changed()).await.expect("a menu").unwrap();
    }
    job.order.key = format!("{}/h2/1.1", job.order.key.run).parse().unwrap();
    let mut session = start_in(job, &terminals);
    let (id, ..) = asked(&mut session).await;
    assert!(session.reply(&id, "No"));
    assert_eq!(finished(&mut session).await.response.summary, "twice");
    assert_eq!(fs::read_to_string(world.work().join("second")).unwrap(), "2\n");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_13_an_unknown_screen_is_shown_to_a_person_and_nothing_is_typed_into_it() {
    let world = World::new();
    let terminals = terminals();
    let script = "option1='Try the new model'; option2='Stay with the old one'; menu 'News for you'; \
                  echo $at > chosen; compose; enter; finish known";
    let mut session = start_in(job(&world, script), &terminals);
    let (id, _, options) = asked(&mut session).await;
    assert_eq!(options, ["Try the new model", "Stay with the old one", "It is ready"]);
    assert!(session.reply(&id, "stay with the old one"));
    assert_eq!(finished(&mut session).await.response.summary, "known");
    assert_eq!(fs::read_to_string(world.work().join("chosen")).unwrap(), "2\n");
    terminals.end_all().await;
}

/// Runs a program that leaves the file `taken` once it has taken its prompt: no receipt says so before.
async fn taken_before_ingested(script: &str) {
    let world = World::new();
    let terminals = terminals();
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job, &terminals);
    let result = loop {
        match next(&mut session.signals).await {
            Some(Signal::Receipt(Receipt::Ingested)) => {
                assert!(world.work().join("taken").exists(), "it was told too early");
            }
            Some(Signal::Finished(result)) => break result,
            Some(Signal::Failed { failure, .. }) => panic!("{failure:?}"),
            Some(_) => {}
            None => panic!("no end"),
        }
    };
    assert_eq!(result.response.summary, "taken");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_06_a_prompt_is_ingested_when_its_composer_is_empty_and_enter_is_pressed_until_then() {
    // It swallows two Enters, and draws something all the same.
    let script = "compose; enter; printf '\\r\\nhmm'; enter; printf ' hmm'; enter; touch taken; finish taken";
    taken_before_ingested(script).await;
}

#[tokio::test]
async fn b_13_an_answer_counts_only_for_the_question_that_it_was_given_to() {
    let world = World::new();
    let terminals = terminals();
    let script = "compose; enter; option1='Yes'; option2='No'; menu 'May I remove one?'; echo $at > one; \
                  menu 'May I remove two?'; echo $at > two; \
                  option1='Yes, always'; option2='Yes'; menu 'May I remove three?'; echo $at > three; finish asked";
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    let (run, agent) = (job.order.key.run, job.order.agent.clone());
    let mut session = start_in(job, &terminals);
    let (one, ..) = asked(&mut session).await;
    // A person answers at the terminal, while another one has the first question before them.
    let terminal = terminals.get(run, &agent).unwrap();
    terminal.write(b"\r".to_vec()).await.unwrap();
    let mut changes = terminal.changes();
    while !terminal.text().join("\n").contains("remove two?") {
        timeout(PATIENCE, changes.changed()).await.expect("a menu").unwrap();
    }
    session.reply(&one, "Yes");
    let (two, title, _) = asked(&mut session).await;
    assert_eq!(title, "May I remove two?");
    assert!(session.reply(&two, "No"));
    let (three, ..) = asked(&mut session).await;
    assert!(session.reply(&three, "Yes"));
    assert_eq!(finished(&mut session).await.response.summary, "asked");
    let chosen = ["one", "two", "three"].map(|name| fs::read_to_string(world.work().join(name)));
    assert_eq!(chosen.map(Result::unwrap), ["1\n", "2\n", "2\n"]);
    terminals.end_all().await;
}

#[tokio::test]
async fn b_13_a_question_that_nobody_answers_is_answered_with_no() {
    let world = World::new();
    let terminals = terminals();
    let script = "compose; enter; option1='Yes'; option2='No'; menu 'May I run the tests?'; echo $at > menu; \
                  printf '\\033[H\\033[2JMay I go on at all?'; key=$(dd bs=3 count=1 2>/dev/null); \
                  [ \"$key\" = \"$esc\" ] && finish no; finish 'not asked'";
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    job.permissions.patience = Duration::from_millis(1);
    let mut session = start_in(job, &terminals);
    let mut settled = Vec::new();
    let result = loop {
        match next(&mut session.signals).await {
            Some(Signal::Settled { choice, .. }) => settled.push(choice),
            Some(Signal::Finished(result)) => break result,
            Some(Signal::Failed { failure, .. }) => panic!("{failure:?}"),
            Some(_) => {}
            None => panic!("no end"),
        }
    };
    assert_eq!(result.response.summary, "no");
    assert_eq!(settled, [Some("No".to_owned()), None]);
    assert_eq!(fs::read_to_string(world.work().join("menu")).unwrap(), "2\n");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_13_half_a_menu_is_not_asked_about() {
    let world = World::new();
    let setup = Setup { quiet: Duration::from_secs(2), ..Setup::default() };
    let terminals = Terminals::new().with_setup(setup);
    let script = "option1='No, exit'; option2='Yes, I trust it'; menu 'Is this folder trusted?'; \
                  printf '\\033[H\\033[2JMay I?\\r\\n\\r\\n> 1. Yes\\r\\n  2. Ne'; sleep 0.5; \
                  option1='Yes'; option2='Never'; menu 'May I?'; echo $at > chosen; compose; enter; finish asked";
    let mut job = job(&world, script);
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job, &terminals);
    let (id, _, options) = asked(&mut session).await;
    assert_eq!((id.as_str(), options), ("1.t1", vec!["Yes".to_owned(), "Never".to_owned()]));
    assert!(session.reply(&id, "Never"));
    assert_eq!(finished(&mut session).await.response.summary, "asked");
    assert_eq!(fs::read_to_string(world.work().join("chosen")).unwrap(), "2\n");
    terminals.end_all().await;
}

#[tokio::test]
async fn b_06_a_prompt_whose_composer_is_only_hidden_is_not_ingested() {
    // It swallows an Enter, and a notice hides its composer for a while.
    let script = "compose; enter; printf '\\033[H\\033[2Ja notice'; sleep 1.5; \
                  printf '\\033[H\\033[2J$ [Pasted text]'; enter; touch taken; finish taken";
    taken_before_ingested(script).await;
}

#[tokio::test]
async fn b_06_a_composer_that_takes_nothing_yet_is_given_nothing() {
    let world = World::new();
    let terminals = terminals();
    // What is typed before it asks for brackets, it throws away.
    let script = "stty raw -echo; printf '$ what next?'; sleep 1.5; stty -icanon min 0 time 0; \
                  early=$(dd bs=4096 count=1 2>/dev/null); stty -icanon min 1; \
                  compose; enter; finish \"early: ${#early}\"";
    let mut job = job(&world, script);
    let mode = job.profile.as_mut().and_then(|profile| profile.pty.as_mut());
    mode.expect("a mode").brackets = true;
    job.ready_timeout = Some(Duration::from_secs(600));
    let mut session = start_in(job, &terminals);
    assert_eq!(finished(&mut session).await.response.summary, "early: 0");
    terminals.end_all().await;
}
