use super::*;
use crate::run::story::{RELAY, Story, h, pass};
use crate::team::order::OrderKey;
use crate::{Input, Status};

const C1: ChangeId = ChangeId(1);

fn set(revision: u32, deletes: bool) -> Box<ProposedSet> {
    let file: FilePath = "src/old.rs".parse().expect("a path");
    let gate = Gate { kind: GateKind::Deletion, file: file.clone() };
    let action = if deletes { Action::Delete } else { Action::Modify };
    Box::new(ProposedSet {
        change: C1,
        agent: None,
        handoff: None,
        revision,
        reason: "Nobody calls it".into(),
        count: 1,
        files: vec![FileNote { file, action, from: None, before: None, after: None }],
        gates: if deletes { vec![gate] } else { Vec::new() },
        status: ChangeStatus::Pending,
    })
}

fn proposes(story: &mut Story, handoff: HandoffId, set: Box<ProposedSet>) {
    let turn = Some(story.key(handoff));
    story.input(crate::TeamInput::ProposeChange { turn, set });
}

fn says(story: &mut Story, text: &str) {
    let file = Some("src/old.rs".to_owned());
    let (by, at, text) = ("ann".into(), "now".into(), text.into());
    let comment = Comment { by, at, file, line: Some(7), revision: 1, text };
    story.input(crate::TeamInput::CommentChange { change: C1, comment });
}

fn decides(story: &mut Story, revision: Option<u32>, status: ChangeStatus) -> Reply {
    let (by, note) = ("ann".to_owned(), String::new());
    story.reply(crate::TeamInput::DecideChange { change: C1, revision, status, by, note })
}

fn wants(story: &mut Story, work: ChangeWork) -> Reply {
    let by = Hand::named("ann");
    let (revision, batch, as_it_is) = (None, None, false);
    let order = crate::TeamInput::OrderChange { change: C1, revision, work, by, batch, as_it_is };
    story.reply(order)
}

/// Carries the open order out, with that outcome.
fn settled(story: &mut Story, status: ChangeStatus) {
    let key = |order| match order {
        Order::Change { key, .. } => Some(key),
        _ => None,
    };
    let order = story.run.orders().into_iter().find_map(key).expect("an order");
    let (by, note) = ("ann".to_owned(), String::new());
    let input = crate::TeamInput::SettleChange { change: C1, order, status, by, note };
    story.input(input.clone()).input(input);
}

fn open(story: &Story) -> Vec<OrderKey> {
    story.run.orders().iter().map(Order::key).collect()
}

fn status(story: &Story) -> ChangeStatus {
    story.run.team.changes[&C1].status
}

#[test]
fn s4_07_what_a_person_has_to_allow_is_a_question_that_the_run_waits_for() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, true));
    story.done(h(1));
    assert_eq!(story.status(), Status::WaitingForHuman);
    assert_eq!(story.question(h(2)).options, ["approve", "refuse", "later"]);
    assert!(story.question(h(2)).details.contains("deletes src/old.rs"));
    story.person_says(h(2), "approve");
    assert_eq!((status(&story), story.status()), (ChangeStatus::Approved, Status::Succeeded));
    wants(&mut story, ChangeWork::Apply);
    settled(&mut story, ChangeStatus::Validated);
    wants(&mut story, ChangeWork::Undo);
    settled(&mut story, ChangeStatus::Undone);
    insta::assert_snapshot!(story.transcript(), @r"
    run created: Add user auth
    h1 human → planner (task_handoff)
    h1 turn 1.1 ordered
    h1 acknowledged
    c1 proposed, revision 1
    h2 planner → human (change)
    h1 turn ended
    h1 Resolved by planner
    h2 answered: approve
    h2 Resolved by human
    c1 approved
    run succeeded: nothing is left to do
    c1 to apply
    c1 validated
    c1 to undo
    c1 undone
    ");
}

#[test]
fn s4_06_a_remark_goes_back_to_the_agent_and_its_revision_replaces_the_set() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, true));
    says(&mut story, "Keep it for one release");
    assert_eq!(story.run.open().count(), 2, "an agent that is at it is not disturbed");
    story.hands(h(1), vec![pass("builder")]);
    let order = story.run.outbox().find(|order| order.agent.as_str() == "planner").expect("a turn");
    assert_eq!(order.revises(), Some(C1));
    assert!(order.offer.summary.contains("src/old.rs:7: Keep it"));
    assert_eq!(story.state(h(2)), "cancelled", "nobody is asked about what is being revised");
    let back = order.key.handoff;
    story.accept(back);
    assert_eq!(wants(&mut story, ChangeWork::Apply), Reply::Ignored(Ignored::BeingRevised));
    proposes(&mut story, back, set(2, false));
    proposes(&mut story, back, set(2, false));
    assert_eq!(wants(&mut story, ChangeWork::Apply), Reply::Ignored(Ignored::BeingRevised));
    story.done(back);
    assert!(!is_being_revised(&story.run, C1));
    assert_eq!(story.run.team.changes[&C1].revision, 2);
    assert!(!story.run.team.changes[&C1].asks, "what is left of it needs nobody");
    story.done(h(3));
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn s4_07_an_answer_in_other_words_goes_back_and_an_agent_that_insists_is_asked_about_again() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, true));
    story.done(h(1)).person_says(h(2), "Only mark it as old");
    assert_eq!(story.status(), Status::Running);
    story.done(h(3));
    assert_eq!(story.status(), Status::WaitingForHuman);
    story.person_says(h(4), "refuse");
    assert_eq!((status(&story), story.status()), (ChangeStatus::Refused, Status::Succeeded));
}

#[test]
fn s4_07_nobody_there_leaves_the_set_for_later_and_every_set_can_be_asked_about() {
    let mut story = Story::relay_with("[changes]\nask_always = true\n");
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, false));
    story.done(h(1));
    assert_eq!(story.status(), Status::WaitingForHuman);
    story.until_due();
    assert_eq!((status(&story), story.status()), (ChangeStatus::Pending, Status::Succeeded));
}

#[test]
fn what_is_decided_elsewhere_takes_its_question_along_and_late_sets_are_not_taken() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    let late = story.key(h(1));
    proposes(&mut story, h(1), set(1, true));
    decides(&mut story, None, ChangeStatus::Approved);
    assert_eq!(story.state(h(2)), "cancelled");
    story.done(h(1));
    assert_eq!(story.status(), Status::Succeeded);
    let before = story.log.len();
    story.input(crate::TeamInput::ProposeChange { turn: Some(late), set: set(2, true) });
    says(&mut story, "too late to go back, yet it is kept");
    assert_eq!(story.log.len(), before + 1);
}

#[test]
fn b_01_a_set_that_is_heard_of_late_has_the_status_that_it_got_meanwhile() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    let late = Box::new(ProposedSet { status: ChangeStatus::Failed, ..*set(1, true) });
    story.input(crate::TeamInput::ProposeChange { turn: None, set: late });
    assert_eq!(story.run.team.changes[&C1].status, ChangeStatus::Failed);
    story.done(h(1));
    assert_eq!(story.status(), Status::Succeeded, "nobody is asked about it");
}

#[test]
fn a_run_remembers_so_many_sets_and_takes_no_more_while_they_are_open() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    for number in 1..=u32::try_from(MOST_SETS).expect("small") + 5 {
        let set = Box::new(ProposedSet { change: ChangeId(number), ..*set(1, false) });
        proposes(&mut story, h(1), set);
    }
    assert_eq!(story.run.team.changes.len(), MOST_SETS);
    wants(&mut story, ChangeWork::Apply);
    settled(&mut story, ChangeStatus::Applied);
    proposes(&mut story, h(1), Box::new(ProposedSet { change: ChangeId(99), ..*set(1, false) }));
    assert!(
        story.run.team.changes.contains_key(&ChangeId(99))
            && !story.run.team.changes.contains_key(&C1)
    );
}

#[test]
fn s4_07_an_attempt_that_came_to_nothing_leaves_the_question_open() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, true));
    wants(&mut story, ChangeWork::Apply);
    settled(&mut story, ChangeStatus::Pending);
    story.done(h(1));
    assert_eq!((story.state(h(2)), story.status()), ("asked", Status::WaitingForHuman));
}

#[test]
fn b_01_an_order_is_open_until_its_outcome_is_recorded_also_after_the_end_and_only_one_at_a_time() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, false));
    story.done(h(1));
    assert!(story.run.is_settled());
    let seq = story.run.seq + 1;
    assert_eq!(wants(&mut story, ChangeWork::Apply), Reply::Ordered { seq });
    let order = WorkKey { run: story.run.id, change: C1, seq: story.run.seq };
    assert_eq!(open(&story), [OrderKey::Change(order)]);
    assert!(!story.run.is_settled(), "the next process finds it");
    assert_eq!(wants(&mut story, ChangeWork::Undo), Reply::Ignored(Ignored::Busy));
    let decided = decides(&mut story, None, ChangeStatus::Refused);
    assert_eq!(decided, Reply::Ignored(Ignored::Busy));
    settled(&mut story, ChangeStatus::Validated);
    assert!(story.run.is_settled());
}

#[test]
fn b_21_a_decision_counts_for_the_revision_that_was_seen() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, true));
    proposes(&mut story, h(1), set(2, true));
    let stale = decides(&mut story, Some(1), ChangeStatus::Approved);
    assert_eq!((stale, status(&story)), (Reply::Ignored(Ignored::Revised), ChangeStatus::Pending));
    assert_eq!(decides(&mut story, Some(2), ChangeStatus::Approved), Reply::Recorded);
    let note = OrderKey::Note { change: C1, upto: story.run.seq - 1 };
    assert_eq!((status(&story), open(&story)), (ChangeStatus::Approved, vec![note]));
    story.input(crate::TeamInput::OrderDone { order: note, heard: None, left: None });
    assert_eq!(open(&story), [], "it is in the record of the set");
    let again = story.reply(crate::TeamInput::OrderDone { order: note, heard: None, left: None });
    assert_eq!(again, Reply::Ignored(Ignored::Unchanged));
}

#[test]
fn b_08_the_outcome_of_worktrees_is_collected_once_after_the_end() {
    let mut story = Story::new(&RELAY.replacen("[workflow]", "[workflow]\nworktrees = true", 1));
    story.accept(h(1));
    assert_eq!(open(&story), []);
    story.done(h(1));
    assert_eq!((open(&story), story.run.is_settled()), (vec![OrderKey::Collect], false));
    story.input(crate::TeamInput::OrderDone { order: OrderKey::Collect, heard: None, left: None });
    assert!(story.run.is_settled());
}

#[test]
fn s4_06_a_comment_after_the_end_is_forwarded_and_the_next_one_after_it() {
    let mut story = Story::new(RELAY);
    story.accept(h(1));
    proposes(&mut story, h(1), set(1, false));
    story.done(h(1));
    assert!(story.run.is_settled());
    let notes = |story: &mut Story| {
        let upto = story.run.team.changes[&C1].unwritten.expect("words");
        let order = OrderKey::Note { change: C1, upto };
        story.input(crate::TeamInput::OrderDone { order, heard: None, left: None });
    };
    says(&mut story, "shorter");
    let first = story.run.seq;
    says(&mut story, "longer");
    let second = story.run.seq;
    notes(&mut story);
    let forward = |comment| OrderKey::Forward { change: C1, comment };
    assert_eq!(open(&story), [forward(first)], "one after the other");
    says(&mut story, "shorter");
    assert_eq!(story.run.seq, second + 1, "said again, it is there once");
    let heard = Some(Heard::Revision { run: story.run.id });
    story.input(crate::TeamInput::OrderDone {
        order: forward(first),
        heard: heard.clone(),
        left: None,
    });
    let known = &story.run.team.changes[&C1];
    assert_eq!(known.forwarded_to(first).cloned(), heard);
    assert_eq!(known.forwarded_to(second), None);
    assert_eq!(open(&story), [forward(second)]);
    assert!(!story.run.is_settled(), "the next process finds it");
    story.input(Input::Cancel { by: "ann".into(), why: String::new() });
    assert!(story.run.is_settled());
    wants(&mut story, ChangeWork::Apply);
    settled(&mut story, ChangeStatus::Validated);
    says(&mut story, "it is in");
    notes(&mut story);
    assert!(story.run.is_settled(), "what the project has is talked about, no more");
}
