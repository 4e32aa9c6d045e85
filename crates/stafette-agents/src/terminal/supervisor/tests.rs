use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn begin() -> (Supervisor, Instant) {
    let now = Instant::now();
    (Supervisor::new(Patience::default(), now), now)
}

#[test]
fn s1_03_a_program_that_says_ready_is_ready_and_works_and_waits() {
    let (mut session, now) = begin();
    assert_eq!(session.state(), State::Starting);
    session.shown(now);
    session.ready();
    assert_eq!(session.state(), State::Ready);
    assert_eq!(session.due(now + 10 * SECOND), None, "it is not late any more");
    session.turn_begins();
    assert_eq!(session.state(), State::Working);
    session.ready();
    assert_eq!(session.state(), State::Working, "a second READY changes nothing");
    session.turn_ends();
    assert_eq!(session.state(), State::Waiting);
}

#[test]
fn s1_03_a_program_that_has_drawn_its_prompt_and_is_quiet_is_ready() {
    let (mut session, now) = begin();
    let settled = Patience::default().settled;
    session.shown(now + SECOND);
    assert_eq!(session.next(), Some(now + SECOND + settled));
    session.shown(now + SECOND + settled / 2);
    assert_eq!(session.due(now + SECOND + settled), None, "it still draws");
    assert_eq!(session.due(now + 3 * SECOND), Some(Due::Changed));
    assert_eq!(session.state(), State::Ready);
}

#[test]
fn s1_03_a_program_that_says_nothing_is_not_ready_after_five_seconds_and_still_usable() {
    let (mut session, now) = begin();
    assert_eq!(session.next(), Some(now + 5 * SECOND));
    assert_eq!(session.due(now + 4 * SECOND), None);
    assert_eq!(session.due(now + 5 * SECOND), Some(Due::Changed));
    assert_eq!(session.state(), State::NotReady);
    session.turn_begins();
    assert_eq!(session.state(), State::Working);
}

#[test]
fn s1_03_ready_may_come_late() {
    let (mut session, now) = begin();
    session.due(now + 6 * SECOND);
    session.ready();
    assert_eq!(session.state(), State::Ready);
}

#[test]
fn s1_15_a_program_that_dies_is_restarted_later_and_later_and_then_given_up() {
    let (mut session, mut now) = begin();
    let mut waits = Vec::new();
    loop {
        match session.left(now, false, u32::MAX) {
            ExitAction::Restart { at } => {
                assert_eq!(session.state(), State::Restarting);
                assert_eq!(session.next(), Some(at));
                waits.push((at - now).as_millis());
                now = at;
                assert_eq!(session.due(now), Some(Due::Restart));
                session.started(now);
                assert_eq!(session.state(), State::Starting);
            }
            ExitAction::GiveUp => break,
            ExitAction::Ended => panic!("it did not leave by itself"),
        }
    }
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000]);
    assert_eq!(session.state(), State::Crashed);
    assert_eq!(session.next(), None);
}

#[test]
fn s1_15_chance_spreads_restarts_over_half_of_the_wait() {
    let (mut session, now) = begin();
    let ExitAction::Restart { at } = session.left(now, false, 0) else { panic!() };
    assert_eq!(at - now, Duration::from_millis(250));
}

#[test]
fn s1_15_no_wait_is_longer_than_the_longest() {
    let now = Instant::now();
    let patience = Patience { restarts: 100, ..Patience::default() };
    let mut session = Supervisor::new(patience, now);
    for _ in 0..99 {
        session.left(now, false, u32::MAX);
        session.started(now);
    }
    let ExitAction::Restart { at } = session.left(now, false, u32::MAX) else { panic!() };
    assert_eq!(at - now, Duration::from_secs(60));
}

#[test]
fn s1_15_a_long_life_or_a_turn_brought_to_its_end_makes_up_for_earlier_deaths() {
    let (mut session, now) = begin();
    for _ in 0..4 {
        session.left(now, false, 0);
        session.started(now);
    }
    assert_eq!(session.deaths(), 4);
    session.left(now + 60 * SECOND, false, 0);
    assert_eq!(session.deaths(), 1);
    session.started(now);
    session.ready();
    session.turn_begins();
    session.turn_ends();
    assert_eq!(session.deaths(), 0);
}

#[test]
fn s1_15_a_program_that_leaves_by_itself_is_not_restarted() {
    let (mut session, now) = begin();
    assert_eq!(session.left(now, true, 0), ExitAction::Ended);
    assert_eq!((session.state(), session.next()), (State::Ended, None));
}

#[test]
fn s1_15_a_session_that_is_ended_on_purpose_stays_so() {
    let (mut session, now) = begin();
    session.left(now, false, 0);
    session.end();
    assert_eq!((session.state(), session.due(now + 60 * SECOND)), (State::Ended, None));
}
