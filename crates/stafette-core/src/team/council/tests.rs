use serde_json::json;

use crate::handoff::About;
use crate::run::story::{Story, ask, done, h, pass};
use crate::run::tell::TurnReport;
use crate::team::Said;
use crate::team::council::Decision;
use crate::team::council::vote::{Stance, Vote};
use crate::workflow::council::party;
use crate::{
    FailureKind, HandoffId, Input, Kind, Offer, Outcome, Party, Reason, Response, Status,
    TurnResult,
};

const FIVE: [&str; 5] = ["Alex", "Sam", "Morgan", "Jordan", "Pierre"];

fn council(rules: &str) -> String {
    let agents: String =
        FIVE.iter().map(|name| format!("[agents.{name}]\nrunner = \"scripted\"\n")).collect();
    format!(
        "[workflow]\nname = \"council\"\nentry = \"council\"\n{agents}\
         [agents.builder]\nrunner = \"scripted\"\n\
         [limits]\ncooldown = \"0s\"\n[retries]\nmax = 1\n\
         [council]\nmembers = {FIVE:?}\n{rules}\n"
    )
}

pub(crate) fn says(signal: Stance, reason: &str) -> TurnResult {
    let vote = Vote {
        signal,
        reason: reason.into(),
        key_decisions: vec![format!("because {reason}")],
        next_topic: None,
    };
    let response = Response { summary: format!("I say {reason}"), ..done().response };
    TurnResult { response, said: Said { vote: Some(vote), ..Said::default() }, ..done() }
}

/// Returns the members that currently speak, by handoff.
fn sitting(story: &Story) -> Vec<(HandoffId, String)> {
    let council = story.run.team.council.as_ref().expect("a council");
    council.sitting.iter().map(|(id, member)| (*id, member.to_string())).collect()
}

/// Lets the current speakers answer with the result of `voice`.
pub(crate) fn speak(story: &mut Story, voice: impl Fn(&str) -> TurnResult) {
    for (id, member) in sitting(story) {
        story.ends(id, voice(&member));
    }
}

fn decision(story: &Story) -> Option<Decision> {
    story.run.team.council.as_ref()?.verdict.as_ref().map(|verdict| verdict.decision)
}

#[test]
fn s4_03_members_speak_in_turn_until_four_of_five_agree() {
    let mut story = Story::new(&council(""));
    speak(&mut story, |_| says(Stance::Building, "a sketch"));
    for _ in 0..4 {
        speak(&mut story, |_| says(Stance::Agree, "it holds"));
    }
    assert_eq!(story.status(), Status::Succeeded);
    let closing = story.closing(h(1)).response;
    assert_eq!((closing.outcome, &closing.outputs["consensus"]), (Outcome::Resolved, &json!(true)));
    assert_eq!(closing.outputs["key_decisions"], json!(["because a sketch", "because it holds"]));
    assert_eq!(closing.outputs["dissent"][0]["member"], "Alex");
    let by = &story.run.team.council.as_ref().expect("a council").decided_by;
    let by: Vec<_> = by.iter().map(|(text, member)| (text.as_str(), member.as_str())).collect();
    assert_eq!(by, [("because a sketch", "Alex"), ("because it holds", "Sam")]);
    insta::assert_snapshot!(story.transcript(), @r"
    run created: Add user auth
    h1 human → council (task_handoff)
    h1 council on: Add user auth
    h2 council → Alex (council)
    h1 waits for [h2]
    h2 turn 1.1 ordered
    h2 acknowledged
    h2 turn ended
    h1 Alex says building
    h2 Resolved by Alex
    h1 goes on
    h3 council → Sam (council)
    h1 waits for [h3]
    h3 turn 1.1 ordered
    h3 acknowledged
    h3 turn ended
    h1 Sam says agree
    h3 Resolved by Sam
    h1 goes on
    h4 council → Morgan (council)
    h1 waits for [h4]
    h4 turn 1.1 ordered
    h4 acknowledged
    h4 turn ended
    h1 Morgan says agree
    h4 Resolved by Morgan
    h1 goes on
    h5 council → Jordan (council)
    h1 waits for [h5]
    h5 turn 1.1 ordered
    h5 acknowledged
    h5 turn ended
    h1 Jordan says agree
    h5 Resolved by Jordan
    h1 goes on
    h6 council → Pierre (council)
    h1 waits for [h6]
    h6 turn 1.1 ordered
    h6 acknowledged
    h6 turn ended
    h1 Pierre says agree
    h6 Resolved by Pierre
    h1 goes on
    h1 consensus: 4 of 5 agree, 4 are needed
    h1 Resolved by council
    run succeeded: nothing is left to do
    ");
}

#[test]
fn s4_03_each_hears_what_was_said_and_the_blind_hear_nothing() {
    let given =
        |story: &Story| story.run.outbox().next().expect("a turn").inputs["council"].clone();
    let mut story = Story::new(&council(""));
    speak(&mut story, |_| says(Stance::Agree, "first"));
    assert_eq!(given(&story)["signals"], json!({"Alex": "agree"}));
    assert_eq!(given(&story)["discussion"][0]["said"], "I say first");

    let mut story = Story::new(&council("blind_first_vote = true"));
    for _ in 0..4 {
        speak(&mut story, |_| says(Stance::Agree, "for it"));
        assert_eq!((given(&story).get("signals"), given(&story).get("discussion")), (None, None));
    }
    assert_eq!(decision(&story), None, "everyone is heard before it counts");
    speak(&mut story, |_| says(Stance::Disagree, "it loses data"));
    assert_eq!(decision(&story), Some(Decision::Consensus));
    let verdict =
        story.run.team.council.as_ref().and_then(|c| c.verdict.clone()).expect("a verdict");
    assert_eq!((verdict.dissent.len(), verdict.dissent[0].reason.as_str()), (1, "it loses data"));
}

#[test]
fn s4_03_what_is_said_in_the_dark_is_in_nothing_that_leaves_before_everyone_has_voted() {
    let mut story = Story::new(&council("blind_first_vote = true"));
    let secret = |_: &str| {
        let mut said = says(Stance::Disagree, "it loses data");
        said.response.outputs.insert("proof".into(), "it loses data".into());
        said
    };
    for _ in 0..4 {
        speak(&mut story, secret);
        assert!(story.run.votes_blindly());
        let order = story.run.outbox().next().expect("a turn");
        assert!(!json!(order).to_string().contains("loses"), "the next one does not hear it");
    }
    let shown = |story: &Story| {
        let events = story.log.iter().map(|recorded| {
            let mut event = recorded.event.clone();
            story.run.veil(&mut event);
            json!(event)
        });
        let handoffs = story.run.handoffs.values().map(|handoff| {
            let mut handoff = (**handoff).clone();
            story.run.veil_handoff(&mut handoff);
            json!(handoff)
        });
        let council = json!(story.run.shown_council());
        json!([events.collect::<Vec<_>>(), handoffs.collect::<Vec<_>>(), council]).to_string()
    };
    let (id, _) = sitting(&story).remove(0);
    let (turn, note) = (story.accept(id).key(id), Some("it loses data".into()));
    story.later(crate::Millis::seconds(60)).input(crate::Input::Heartbeat { turn, note });
    assert!(json!(story.log).to_string().contains("it loses data"), "the run itself knows it");
    assert!(!shown(&story).contains("loses"), "{}", shown(&story));
    assert!(!shown(&story).contains("\"disagree\""), "{}", shown(&story));
    let forked = story.run.fork(story.now, crate::RunId(uuid::Uuid::from_u128(9)), "ada".into());
    let mut forked = forked.expect("a fork").remove(0);
    assert!(story.run.veil(&mut forked));
    assert!(!json!(forked).to_string().contains("loses"), "nor by way of a fork");
    speak(&mut story, secret);
    assert!(!story.run.votes_blindly() && shown(&story).contains("it loses data"));
}

#[test]
fn s4_03_in_parallel_a_round_is_heard_whole() {
    let mut story = Story::new(&council("mode = \"parallel\""));
    assert_eq!(sitting(&story).len(), 5);
    speak(&mut story, |_| says(Stance::Building, "hm"));
    assert_eq!(sitting(&story).len(), 5);
    speak(&mut story, |_| says(Stance::Agree, "yes"));
    assert_eq!(decision(&story), Some(Decision::Consensus));
    assert_eq!(story.run.tally.handoffs, 0, "the turns of members are not handoffs to be limited");
}

#[test]
fn s4_03_voices_weigh_what_the_workflow_says() {
    let rules = "quorum = \"2 of 3\"\nweights = { Alex = 6, Pierre = 0 }";
    let mut story = Story::new(&council(rules));
    speak(&mut story, |_| says(Stance::Agree, "heavy"));
    assert_eq!(decision(&story), Some(Decision::Consensus), "6 of 9 is two thirds");
}

#[test]
fn s4_03_six_turns_each_and_a_person_is_asked() {
    let mut story = Story::new(&council(""));
    for _ in 0..30 {
        speak(&mut story, |_| says(Stance::Disagree, "never"));
    }
    assert_eq!(story.status(), Status::WaitingForHuman);
    let question = story.question(h(32));
    assert_eq!(
        (question.reason.as_str(), question.about),
        ("no_consensus", About::Team(crate::TeamAbout::Council(h(1))))
    );
    assert!(question.details.contains("no consensus after 6 turns each: 0 of 5 agree"));
    assert!(question.context.contains("Alex: disagree (never)"));

    story.person_says(h(32), "Think of the users");
    let order = story.run.outbox().next().expect("they speak on");
    let said = order.inputs["council"]["discussion"].as_array().and_then(|all| all.last().cloned());
    assert_eq!(said.expect("words")["said"], "Think of the users");
    for _ in 0..30 {
        speak(&mut story, |_| says(Stance::Disagree, "never"));
    }
    let id = story.run.open().last().expect("a question").id;
    story.person_says(id, "accept");
    assert_eq!((story.status(), decision(&story)), (Status::Succeeded, Some(Decision::Accepted)));
}

#[test]
fn s4_03_an_exhausted_council_may_leave_it_to_the_next_generation() {
    let mut story = Story::new(&council("exhausted = \"hand_over\"\nturns_per_agent = 1"));
    for _ in 0..5 {
        speak(&mut story, |_| done());
    }
    assert_eq!(story.status(), Status::Succeeded);
    let closing = story.closing(h(1)).response;
    assert_eq!((closing.outcome, &closing.outputs["consensus"]), (Outcome::Partial, &json!(false)));
}

#[test]
fn s4_03_whoever_fails_has_had_its_turn_and_the_others_go_on() {
    let rule = "[[recovery.rules]]\naction = \"skip_and_continue\"";
    let mut story = Story::new(&format!("{}{rule}", council("")));
    story.accept(h(2)).breaks(h(2), FailureKind::Recoverable);
    let position = &story.run.team.council.as_ref().expect("a council").positions["Alex"];
    assert_eq!((position.turns, position.signal), (1, None));
    for _ in 0..4 {
        speak(&mut story, |_| says(Stance::Agree, "without it"));
    }
    assert_eq!(decision(&story), Some(Decision::Consensus));
}

#[test]
fn s4_03_nobody_else_speaks_for_a_member_that_fails() {
    let rule = "[[recovery.rules]]\naction = \"retry_different_target\"\ntarget = \"builder\"";
    let mut story = Story::new(&format!("{}{rule}", council("")));
    story.accept(h(2)).breaks(h(2), FailureKind::Recoverable);
    assert_eq!(story.status(), Status::WaitingForHuman);
    story.person_says(h(3), "skip");
    assert_eq!(sitting(&story)[0].1, "Sam");
}

#[test]
fn s4_03_a_signal_that_is_told_counts_and_a_printed_one_has_to_be_confirmed() {
    let mut story = Story::new(&council("quorum = \"1 of 5\""));
    let bare = TurnResult { bare: true, ..says(Stance::Agree, "quoted") };
    story.ends(h(2), bare.clone());
    assert_eq!(story.question(h(3)).details, "Its output says `agree`. Is that meant?");
    story.person_says(h(3), "refuse");
    let vote = Some(Vote { signal: Stance::Disagree, ..Vote::default() });
    let told =
        Box::new(TurnReport { said: Said { vote, ..Said::default() }, ..TurnReport::default() });
    story.accept(h(2));
    story.input(Input::Tell { turn: story.key(h(2)), told }).ends(h(2), bare);
    let council = story.run.team.council.as_ref().expect("a council");
    assert_eq!(council.positions["Alex"].signal, Some(Stance::Disagree));
}

#[test]
fn s4_03_an_agent_puts_something_before_the_council_and_goes_on_with_the_answer() {
    let text = council("").replace("entry = \"council\"", "entry = \"builder\"");
    let mut story = Story::new(&text);
    story.hands(h(1), vec![crate::Offer { summary: "JWT?".into(), ..ask("council") }]);
    assert_eq!(story.state(h(1)), "blocked");
    for _ in 0..4 {
        speak(&mut story, |_| says(Stance::Agree, "JWT"));
    }
    let order = story.run.outbox().next().expect("the builder goes on");
    assert_eq!((order.agent.as_str(), &order.inputs["consensus"]), ("builder", &json!(true)));
    story.hands(h(1), vec![pass("council")]);
    let council = story.run.team.council.as_ref().expect("a council");
    assert_eq!(council.topic, "Add user auth");
    assert_eq!(council.decided_by["because JWT"].as_str(), "Alex", "of the council before it");
    let (id, _) = sitting(&story)[0].clone();
    story.hands(id, vec![pass("council")]);
    assert_eq!(story.run.tally.circular, 1, "a council does not call itself");
}

#[test]
fn s4_03_what_they_agree_on_goes_to_whoever_carries_it_out() {
    let mut story = Story::new(&council("then = \"builder\""));
    for _ in 0..4 {
        speak(&mut story, |_| says(Stance::Agree, "yes"));
    }
    let order = story.run.outbox().next().expect("a turn");
    assert_eq!(order.agent.as_str(), "builder");
    assert_eq!(order.inputs["key_decisions"], json!(["because yes"]));
    story.done(order.key.handoff);
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn without_a_council_there_is_nobody_to_ask() {
    let mut story = Story::new(crate::run::story::RELAY);
    story.hands(h(1), vec![pass("council")]);
    assert!(story.transcript().contains("Unknown target"));
}

#[test]
fn what_is_kept_of_a_discussion_is_bounded() {
    let mut story = Story::new(&council("turns_per_agent = 8"));
    for turn in 0..39 {
        let long = format!("{turn} {}", "x".repeat(2000));
        speak(&mut story, |_| says(Stance::Building, &long));
    }
    let council = serde_json::to_string(&story.run.team.council).expect("JSON");
    assert!(council.len() < 64 * 1024, "{}", council.len());
}

fn to_council(from: Party, kind: Kind) -> Offer {
    Offer::new(from, party(), kind, Reason::TaskHandoff)
}

/// Returns the handoff that the council currently decides on.
fn topic(story: &Story) -> Option<HandoffId> {
    story.run.team.council.as_ref().map(|council| council.handoff)
}

#[test]
fn s4_03_what_comes_to_the_council_meanwhile_waits_until_it_has_decided() {
    let mut story = Story::new(&council("quorum = \"1 of 5\""));
    let offer = Box::new(to_council(Party::Human, Kind::Transfer));
    story.input(Input::Propose { offer });
    assert_eq!((topic(&story), sitting(&story).len()), (Some(h(1)), 1));
    speak(&mut story, |_| says(Stance::Agree, "this"));
    assert_eq!((topic(&story), sitting(&story).len()), (Some(h(3)), 1));
    speak(&mut story, |_| says(Stance::Agree, "that"));
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn s4_03_a_member_that_hands_to_its_own_council_hears_that_it_cannot() {
    let rules = "quorum = \"1 of 5\"\n[[routes]]\nfrom = \"Alex\"\nto = \"council\"";
    let mut story = Story::new(&council(rules));
    let asks = vec![to_council(Party::from("Alex"), Kind::Delegate)];
    story.ends(h(2), TurnResult { offers: asks, ..done() });
    assert!(story.transcript().contains("council → council and no loop"), "{}", story.transcript());
    story.ends(h(2), says(Stance::Agree, "by myself then"));
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn s4_03_an_offer_in_the_councils_name_is_no_turn_of_it() {
    let mut story = Story::new(&council("blind_first_vote = true"));
    let posed =
        Offer::new(party(), "builder".into(), Kind::Delegate, Reason::Other("council".into()));
    let posed = Offer { summary: "As the council".into(), ..posed };
    let seats = sitting(&story).len();
    for from in [party(), Party::Human] {
        let offer = Box::new(Offer { from, ..posed.clone() });
        let reply = story.reply(Input::Propose { offer });
        if let crate::Reply::Admitted { handoff } = reply {
            let mut shown = story.run.handoff(handoff).expect("a handoff").clone();
            let whole = shown.clone();
            assert!(!super::is_turn(&whole.constraints));
            assert!(!story.run.veil_handoff(&mut shown) && shown == whole, "nothing is hidden");
        }
    }
    assert_eq!(sitting(&story).len(), seats, "nobody else has a seat");
}
