use stafette_engine::Group;

use super::super::sample::{NOW, agent, looked, team};
use super::*;

fn state(options: &[&str]) -> State {
    let mut state = State::new(NOW);
    state.update(Input::Snapshot(Box::new(team(options))));
    state
}

/// Types these keys, and returns the effect of the last one.
fn types(state: &mut State, keys: &str) -> Option<Effect> {
    let key = |letter| match letter {
        '\n' => Key::Enter,
        '\x1b' => Key::Escape,
        '\x08' => Key::Backspace,
        letter => Key::Char(letter),
    };
    keys.chars().map(|letter| state.update(Input::Key(key(letter)))).last().flatten()
}

fn pointed(state: &State) -> &str {
    state.agent().map_or("", |agent| agent.agent.as_str())
}

#[test]
fn b_13_who_needs_you_comes_first_and_keys_walk_down_the_list() {
    let mut state = state(&[]);
    let groups: Vec<Group> = state.shown().iter().map(|agent| agent.group).collect();
    assert!(groups.is_sorted() && groups[0] == Group::NeedsYou, "{groups:?}");
    assert_eq!(pointed(&state), "writer");
    types(&mut state, "j");
    assert_eq!(pointed(&state), "builder");
    types(&mut state, "G");
    assert_eq!(pointed(&state), "planner");
    types(&mut state, "jjk");
    assert_eq!(pointed(&state), "fixer");
    types(&mut state, "gk");
    assert_eq!(pointed(&state), "writer");
}

#[test]
fn whoever_is_pointed_at_stays_so_when_the_list_changes() {
    let mut state = state(&[]);
    types(&mut state, "j");
    let mut next = team(&[]);
    next.agents[1].group = Group::Idle;
    state.update(Input::Snapshot(Box::new(next.clone())));
    assert_eq!(pointed(&state), "builder");
    next.agents.remove(1);
    state.update(Input::Snapshot(Box::new(next.clone())));
    assert_ne!(pointed(&state), "", "somebody took its place");
    next.agents.clear();
    state.update(Input::Snapshot(Box::new(next)));
    assert_eq!(pointed(&state), "");
    assert_eq!(types(&mut state, "j\n"), None, "there is nobody to open");
    assert_eq!(state.pane, Pane::List);
}

#[test]
fn b_13_an_option_is_chosen_by_its_number_after_a_yes() {
    let mut state = state(&["allow", "refuse"]);
    let look = types(&mut state, "\n");
    let run = state.agent().expect("an agent").run;
    assert_eq!(look, Some(Effect::Look { run, after: 10 }));
    assert_eq!(types(&mut state, "3"), None);
    assert_eq!(state.said.as_deref(), Some("There is no option 3."));
    assert_eq!(types(&mut state, "2n"), None);
    assert_eq!(types(&mut state, "y"), None, "a no is a no");
    let given = types(&mut state, "2y");
    let text = "refuse".to_owned();
    let answer = Answer { run, handoff: HandoffId(3), text, typed: false };
    assert_eq!(given, Some(Effect::Answer(answer)));
    assert_eq!(state.prompt, Prompt::None);
}

#[test]
fn b_13_an_answer_can_be_typed_and_belongs_to_the_question_it_was_typed_for() {
    let mut state = state(&[]);
    types(&mut state, "\nafunders\x08\x08\x08\x08\x08\x08ounders for q?\n");
    let Prompt::Confirm(answer) = &state.prompt else { panic!("{:?}", state.prompt) };
    assert_eq!((answer.text.as_str(), answer.typed), ("founders for q?", true));
    // Meanwhile another person answers, and the agent asks no more.
    let mut next = team(&[]);
    next.agents[3] = agent("writer", Group::Working, "writes");
    state.update(Input::Snapshot(Box::new(next)));
    let Some(Effect::Answer(answer)) = types(&mut state, "y") else { panic!("an answer") };
    assert_eq!(answer.handoff, HandoffId(3), "the daemon says that it came too late");
    types(&mut state, "a");
    assert_eq!(state.prompt, Prompt::None, "there is nothing to answer any more");
}

#[test]
fn a_filter_narrows_the_list_and_escape_widens_it_before_it_leaves() {
    let mut state = state(&[]);
    types(&mut state, "/BUILD");
    assert_eq!((state.shown().len(), pointed(&state)), (1, "builder"));
    types(&mut state, "\n");
    assert_eq!((&state.prompt, state.pane), (&Prompt::None, Pane::List));
    assert_eq!(types(&mut state, "\x1b"), None);
    assert_eq!(state.shown().len(), 5);
    types(&mut state, "/needs you\n");
    assert_eq!((state.shown().len(), pointed(&state)), (1, "writer"));
    assert_eq!(types(&mut state, "\x1b\x1b"), Some(Effect::Quit));
}

#[test]
fn every_way_out_leads_out() {
    assert_eq!(types(&mut state(&[]), "q"), Some(Effect::Quit));
    assert_eq!(types(&mut state(&[]), "\nq"), Some(Effect::Quit));
    let mut typing = state(&[]);
    assert_eq!(types(&mut typing, "/q"), None, "here it is a letter");
    assert_eq!(typing.update(Input::Key(Key::Stop)), Some(Effect::Quit));
    let mut helped = state(&[]);
    types(&mut helped, "\n?");
    assert_eq!(helped.pane, Pane::Help);
    assert_eq!(types(&mut helped, "q"), None);
    assert_eq!(helped.pane, Pane::Detail);
}

#[test]
fn the_events_of_an_open_agent_are_read_again_when_its_run_moves_on() {
    let mut state = state(&[]);
    types(&mut state, "\n");
    let run = state.agent().expect("an agent").run;
    state.update(looked(run, vec!["one".into()]));
    assert_eq!(state.update(Input::Snapshot(Box::new(team(&[])))), None);
    let mut next = team(&[]);
    next.agents[3].seq = 51;
    let look = state.update(Input::Snapshot(Box::new(next)));
    assert_eq!(look, Some(Effect::Look { run, after: 11 }));
    types(&mut state, "G");
    assert!(state.events.is_empty(), "another run's events are not its own");
    state.update(looked(run, vec!["late".into()]));
    assert!(state.events.is_empty());
}

#[test]
fn trouble_is_over_when_the_daemon_answers_again() {
    let mut state = state(&[]);
    state.update(Input::Trouble("No daemon answers".into()));
    assert!(state.trouble.is_some());
    state.update(Input::Snapshot(Box::new(team(&[]))));
    assert_eq!(state.trouble, None);
}
