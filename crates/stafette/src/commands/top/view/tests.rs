use stafette_agents::screen::Screen;
use stafette_core::wire::frame::Word;
use stafette_engine::CouncilView;

use super::super::sample::{NOW, council, looked, team};
use super::super::state::{Input, Key, Looked, Snapshot};
use super::*;
use crate::window::rows::Rows;

/// What a terminal shows.
fn screen(state: &mut State, columns: u16, rows: u16) -> String {
    let mut screen = Screen::new(Word::default(), columns, rows).expect("a size");
    let lines = draw(state, Theme { colour: false }, (columns, rows));
    assert_eq!(lines.len(), usize::from(rows), "a line for each row");
    let lines = lines.iter().map(|line| line.row(columns)).collect();
    screen.feed(Rows::default().write(lines).as_bytes());
    let mut shown = screen.text();
    shown.resize(rows.into(), String::new());
    shown.into_iter().map(|row| format!("\"{}\"\n", cell(&row, columns.into()))).collect()
}

fn state(snapshot: Snapshot) -> State {
    let mut state = State::new(NOW);
    state.update(Input::Snapshot(Box::new(snapshot)));
    state
}

fn press(state: &mut State, keys: &[Key]) {
    for key in keys {
        state.update(Input::Key(*key));
    }
}

#[test]
fn b_13_everyone_on_a_screen_of_80_columns() {
    insta::assert_snapshot!(screen(&mut state(team(&[])), 80, 24), @r#"
    "stafette top  1 run · 1 needs you · $0.60 spent                                 "
    "NEEDS YOU 1                                                                     "
    "▸ ! asks      writer           9c1f2a3b writer needs audience (who…  12s   $0.12"
    "WORKING 1                                                                       "
    "  ● works     builder          9c1f2a3b compiles �[31mthe parser a…  12s   $0.12"
    "WAITING 1                                                                       "
    "  ○ waits     a-reviewer-with… 9c1f2a3b attempt 2 follows in 5s      12s   $0.12"
    "IDLE 1                                                                          "
    "  · idle      fixer            9c1f2a3b had nothing to do yet        12s   $0.12"
    "DONE 1                                                                          "
    "  ✗ failed    planner          aaaabbbb the budget is reached        12s   $0.12"
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "? help · q quit · Enter open · j/k move · / filter                              "
    "#);
}

#[test]
fn b_13_everyone_on_a_screen_of_40_columns() {
    insta::assert_snapshot!(screen(&mut state(team(&[])), 40, 12), @r#"
    "1 run · 1 needs you · $0.60 spent       "
    "NEEDS YOU 1                             "
    "▸ ! asks      writer    writer nee…  12s"
    "WORKING 1                               "
    "  ● works     builder   compiles �…  12s"
    "WAITING 1                               "
    "  ○ waits     a-review… attempt 2 …  12s"
    "IDLE 1                                  "
    "  · idle      fixer     had nothin…  12s"
    "DONE 1                                  "
    "  ✗ failed    planner   the budget…  12s"
    "? help · q quit · Enter open · j/k move "
    "#);
}

#[test]
fn b_13_one_agent_with_its_question_and_what_happened() {
    let mut state = state(team(&["allow", "refuse"]));
    press(&mut state, &[Key::Enter]);
    let run = state.agent().expect("an agent").run;
    let event = |n: u32| format!("{n:>5} 12:00:00.000 turn_ordered      h1/1.{n}");
    state.update(looked(run, (1..=30).map(event).collect()));
    insta::assert_snapshot!(screen(&mut state, 80, 24), @r#"
    "stafette top  1 run · 1 needs you · $0.60 spent                                 "
    "! writer asks · 12s                                                             "
    "run 9c1f2a3b is running: Write the market report                                "
    "$0.12 · 900 tokens                                                              "
    "                                                                                "
    "QUESTION h3                                                                     "
    "writer needs audience (who the report is for)                                   "
    "The market is 9 bn.                                                             "
    "  1 allow                                                                       "
    "  2 refuse                                                                      "
    "  a answer in your own words                                                    "
    "                                                                                "
    "HANDOFF h1 running · from human · task_handoff                                  "
    "Write the market report                                                         "
    "round 1 · attempt 2                                                             "
    "inputs: market_size, audience                                                   "
    "                                                                                "
    "LAST EVENTS                                                                     "
    "   26 12:00:00.000 turn_ordered      h1/1.26                                    "
    "   27 12:00:00.000 turn_ordered      h1/1.27                                    "
    "   28 12:00:00.000 turn_ordered      h1/1.28                                    "
    "   29 12:00:00.000 turn_ordered      h1/1.29                                    "
    "   30 12:00:00.000 turn_ordered      h1/1.30                                    "
    "1-9 choose · a answer · Esc back · ? help                                       "
    "#);
    press(&mut state, &[Key::Char('1')]);
    insta::assert_snapshot!(screen(&mut state, 40, 12), @r#"
    "1 run · 1 needs you · $0.60 spent       "
    "! writer asks · 12s                     "
    "run 9c1f2a3b is running: Write the      "
    "market report                           "
    "$0.12 · 900 tokens                      "
    "                                        "
    "QUESTION h3                             "
    "writer needs audience (who the report is"
    "for)                                    "
    "The market is 9 bn.                     "
    "  1 allow                               "
    "Answer h3 with `allow`? y/n             "
    "#);
    press(&mut state, &[Key::Char('n'), Key::PageDown, Key::PageDown, Key::PageDown]);
    let end = screen(&mut state, 40, 12);
    assert!(end.contains("   30 12:00"), "{end}");
    press(&mut state, &[Key::PageUp]);
    assert_ne!(screen(&mut state, 40, 12), end, "one page back is seen at once");
}

#[test]
fn s4_03_the_council_of_an_agents_run_is_there_as_status_tells_it() {
    let mut state = state(team(&[]));
    press(&mut state, &[Key::Char('G'), Key::Char('k'), Key::Enter]);
    let run = state.agent().expect("an agent").run;
    let see = |state: &mut State, council| {
        let council = Some(Box::new(council));
        state.update(Input::Looked(Looked { run, events: Vec::new(), council }));
    };
    see(&mut state, council());
    insta::assert_snapshot!(screen(&mut state, 80, 12), @r#"
    "stafette top  1 run · 1 needs you · $0.60 spent                                 "
    "· fixer idle · 12s                                                              "
    "run 9c1f2a3b is running: Write the market report                                "
    "$0.12 · 900 tokens                                                              "
    "had nothing to do yet                                                           "
    "                                                                                "
    "COUNCIL Where the cache lives                                                   "
    "2 of 4 agree, 3 are needed                                                      "
    "builder ×2: agree · fixer: disagree · writer: yet to speak                      "
    "                                                                                "
    "LAST EVENTS                                                                     "
    "Enter terminal · Esc back · j/k next · ? help · q quit                          "
    "#);
    let mut blind = CouncilView { sealed: true, agreed: 0, ..council() };
    blind.members.iter_mut().for_each(|member| member.signal = None);
    see(&mut state, blind);
    let shown = screen(&mut state, 80, 12);
    assert!(shown.contains("the first vote is blind: 2 of 3 have voted"), "{shown}");
    assert!(shown.contains("builder ×2: has voted · fixer: has voted"), "{shown}");
    // Another run has no council, or another one.
    press(&mut state, &[Key::Char('G')]);
    assert!(!screen(&mut state, 80, 12).contains("COUNCIL"));
}

#[test]
fn an_empty_screen_says_what_to_type() {
    insta::assert_snapshot!(screen(&mut state(Snapshot::default()), 40, 12), @r#"
    "0 runs · 0 need you · $0.00 spent       "
    "                                        "
    "No agents are at work.                  "
    "                                        "
    "Give them something to do:              "
    "  stafette run "Add a login page"       "
    "See a team at work, without keys:       "
    "  stafette demo                         "
    "                                        "
    "                                        "
    "                                        "
    "? help · q quit · Enter open · j/k move "
    "#);
    let mut nobody = state(team(&[]));
    press(&mut nobody, &[Key::Char('/'), Key::Char('~')]);
    let shown = screen(&mut nobody, 40, 12);
    assert!(shown.contains("Nobody fits `~`.") && shown.contains("/~▏"), "{shown}");
}

#[test]
fn help_fits_on_a_small_screen() {
    let mut state = state(team(&[]));
    press(&mut state, &[Key::Char('?')]);
    insta::assert_snapshot!(screen(&mut state, 40, 12), @r#"
    "1 run · 1 needs you · $0.60 spent       "
    "j k ↑ ↓   move                          "
    "g G       first, last                   "
    "Enter     open; again: its terminal     "
    "1-9       choose an option of its questi"
    "a         answer in your own words      "
    "Space     further down; PgUp, PgDn      "
    "/         show only who fits a word     "
    "Esc       back                          "
    "q Ctrl-C  quit; the agents go on        "
    "                                        "
    "any key: back                           "
    "#);
}

#[test]
fn trouble_and_long_lists_are_shown_where_they_can_be_seen() {
    let mut snapshot = team(&[]);
    let one = snapshot.agents[1].clone();
    snapshot.agents.extend((0..50).map(|n| AgentView { agent: format!("b{n:02}"), ..one.clone() }));
    let mut state = state(snapshot);
    press(&mut state, &[Key::End]);
    state.update(Input::Trouble("No daemon answers: start it with `stafette up`".into()));
    let shown = screen(&mut state, 60, 10);
    assert!(shown.contains("▸ ✗ failed    planner"), "{shown}");
    assert!(shown.contains("! No daemon answers"), "{shown}");
    assert!(!shown.contains("NEEDS YOU"), "{shown}");
}

#[test]
fn any_size_can_be_drawn() {
    for (columns, rows) in [(1, 1), (3, 2), (10, 3), (200, 60)] {
        let mut state = state(team(&["allow"]));
        for key in [Key::Down, Key::Enter, Key::Char('?')] {
            press(&mut state, &[key]);
            screen(&mut state, columns, rows);
        }
    }
}
