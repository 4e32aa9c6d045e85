use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const MINUTE: i64 = 60_000;

/// The locks of a project in a scenario with virtual time.
struct Story {
    now: Time,
    locks: Locks,
    log: Vec<LockEvent>,
}

impl Story {
    fn new() -> Self {
        Story { now: Time(0), locks: Locks::default(), log: Vec::new() }
    }

    fn ask(&mut self, ask: Ask) -> Result<LockOutcome, Refusal> {
        let Decision { events, answer } = self.locks.decide(self.now, ask);
        for event in &events {
            self.locks.apply(event);
        }
        self.log.extend(events);
        self.is_sound();
        answer
    }

    /// Checks the invariants that hold after every step.
    fn is_sound(&self) {
        let held: Vec<&Lock> = self.locks.held.values().collect();
        for (n, one) in held.iter().enumerate() {
            for other in &held[n + 1..] {
                assert!(!one.claim.conflicts(&other.claim), "{one:?} and {other:?}");
                assert_ne!(one.fence, other.fence);
            }
        }
        assert!(self.locks.circle().is_none(), "{:?}", self.locks);
        assert!(self.locks.held.len() + self.locks.waiting.len() <= MOST_LOCKS);
        let fences = self.log.iter().filter_map(|event| match event {
            LockEvent::LockTaken { lock } => Some(lock.fence),
            _ => None,
        });
        assert!(fences.eq(1..=self.locks.fence), "every number once, in order");
        let mut replayed = Locks::default();
        self.log.iter().for_each(|event| replayed.apply(event));
        assert_eq!(replayed, self.locks);
    }

    fn passes(&mut self, minutes: i64) {
        self.now = Time(self.now.0 + minutes * MINUTE);
        self.ask(Ask::Tick).expect("time passes");
    }

    fn wants(&mut self, who: &str, what: &str) -> Result<LockOutcome, Refusal> {
        self.ask(Ask::Take {
            claim: claim(who, what),
            on_conflict: OnConflict::Wait,
            wait: Millis::minutes(60),
        })
    }

    fn takes(&mut self, who: &str, what: &str) -> Lock {
        match self.wants(who, what) {
            Ok(LockOutcome::Held(lock)) => lock,
            other => panic!("{who} does not get {what}: {other:?}"),
        }
    }

    fn waits(&mut self, who: &str, what: &str) -> LockId {
        match self.wants(who, what) {
            Ok(LockOutcome::Waiting(waiter)) => waiter.id,
            other => panic!("{who} does not wait for {what}: {other:?}"),
        }
    }

    fn gives_back(&mut self, who: &str, id: LockId) {
        self.ask(Ask::Release { id, by: Holder::person(who) }).expect("given back");
    }

    fn holder_of(&self, id: LockId) -> Option<String> {
        self.locks.held.get(&id).map(|lock| lock.claim.holder.to_string())
    }
}

/// Creates a claim of 30 minutes; the prefix `read:` makes it shared.
fn claim(who: &str, what: &str) -> Claim {
    let (mode, what) = match what.strip_prefix("read:") {
        Some(what) => (Mode::Shared, what),
        None => (Mode::Exclusive, what),
    };
    let patterns = what.split(' ').map(|text| text.parse().expect("a pattern")).collect();
    Claim {
        holder: Holder::person(who),
        turn: None,
        patterns,
        mode,
        lease: LockRules::default().lease,
        reason: String::new(),
    }
}

fn agent(name: &str, attempt: u32) -> Claim {
    let run = RunId(Uuid::nil());
    let turn = TurnKey { run, handoff: HandoffId(1), attempt, turn: 1 };
    let holder = Holder::session(run, name.parse().expect("a name"));
    Claim { holder, turn: Some(turn), ..claim("x", "src/**") }
}

#[test]
fn s5_04_a_lock_lasts_thirty_minutes_unless_it_is_renewed() {
    let mut story = Story::new();
    let lock = story.takes("ada", "src/a.rs");
    assert_eq!(lock.expires_at, Time(30 * MINUTE));
    story.passes(20);
    let by = Holder::person("ada");
    let renew = |fence| Ask::Renew { id: lock.id, by: by.clone(), fence, lease: None };
    let Ok(LockOutcome::Held(renewed)) = story.ask(renew(Some(lock.fence))) else {
        panic!("renewed")
    };
    assert_eq!((renewed.fence, renewed.expires_at), (lock.fence, Time(50 * MINUTE)));
    story.passes(29);
    assert_eq!(story.holder_of(lock.id).as_deref(), Some("ada"));
    story.passes(1);
    assert_eq!(story.locks.held.len(), 0);
    assert_eq!(story.ask(renew(None)), Err(Refusal::Lost { id: lock.id }));
}

#[test]
fn s5_04_an_expired_lock_is_taken_over_and_its_holder_cannot_write_any_more() {
    let mut story = Story::new();
    let old = story.takes("ada", "src/**");
    let writes = |story: &Story, name, fence| {
        story.locks.may_write(story.now, &Holder::person(name), ["src/a.rs"], Some(fence))
    };
    writes(&story, "ada", old.fence).expect("ada may write");
    // Ada pauses; no tick arrives until Bob does.
    story.now = Time(31 * MINUTE);
    assert!(writes(&story, "ada", old.fence).is_err(), "the lease alone tells");
    let new = story.takes("bob", "src/a.rs");
    assert!(new.fence > old.fence);
    assert_eq!(writes(&story, "ada", old.fence), Err(Conflict::Lost { fence: old.fence }));
    writes(&story, "bob", new.fence).expect("bob may write");
    let ada = Holder::person("ada");
    let write = |paths: &[&'static str], fence| {
        story.locks.may_write(story.now, &ada, paths.iter().copied(), fence)
    };
    write(&["docs/a.md"], None).expect("nobody has it");
    let refused = write(&["docs/a.md", "src/a.rs"], None).expect_err("bob has it");
    assert!(refused.to_string().starts_with("src/a.rs is locked by bob until 1970"), "{refused}");
    assert_eq!(write(&["docs/a.md"], Some(old.fence)), Err(Conflict::Lost { fence: old.fence }));
    assert_eq!(write(&["docs/a.md"], Some(new.fence)), Err(Conflict::Lost { fence: new.fence }));
}

#[test]
fn s5_05_who_waits_is_served_in_order() {
    let mut story = Story::new();
    let ada = story.takes("ada", "src/**").id;
    let bob = story.waits("bob", "src/a.rs");
    let eve = story.waits("eve", "src/**");
    let dan = story.waits("dan", "src/b.rs");
    story.takes("dan", "docs/**");
    story.gives_back("ada", ada);
    assert_eq!(story.holder_of(bob).as_deref(), Some("bob"));
    assert_eq!(story.holder_of(dan), None, "eve came first, though it would be free for dan");
    story.gives_back("bob", bob);
    assert_eq!(story.holder_of(eve).as_deref(), Some("eve"));
    assert_eq!(story.holder_of(dan), None);
    story.passes(30);
    assert_eq!(story.holder_of(dan).as_deref(), Some("dan"), "eve's lease is over");
}

#[test]
fn s5_05_a_conflict_is_waited_for_skipped_or_taken_over_as_configured() {
    let mut story = Story::new();
    let ada = story.takes("ada", "src/**");
    let mut as_configured = |on_conflict, reason: &str| {
        let claim = Claim { reason: reason.into(), ..claim("bob", "src/a.rs") };
        story.ask(Ask::Take { claim, on_conflict, wait: Millis::minutes(1) })
    };
    let skipped = as_configured(OnConflict::Skip, "").expect_err("ada has it");
    assert!(skipped.to_string().starts_with("src/** is locked by ada until"), "{skipped}");
    let Ok(LockOutcome::Waiting(waiter)) = as_configured(OnConflict::Wait, "") else {
        panic!("waits")
    };
    let again = as_configured(OnConflict::Wait, "");
    assert_eq!(again, Ok(LockOutcome::Waiting(waiter.clone())), "one wish has one place");
    story.passes(1);
    assert_eq!(story.locks.waiting.len(), 0, "a wait has a deadline");
    let mut take_over = |reason: &str| {
        let claim = Claim { reason: reason.into(), ..claim("bob", "src/a.rs") };
        let wait = Millis(0);
        story.ask(Ask::Take { claim, on_conflict: OnConflict::TakeOver, wait })
    };
    assert_eq!(take_over(" "), Err(Refusal::NoReason));
    let Ok(LockOutcome::Held(lock)) = take_over("the build is broken") else { panic!("taken") };
    assert!(lock.fence > ada.fence);
    let ended = Ended::TakenOver { by: Holder::person("bob"), why: "the build is broken".into() };
    assert!(story.log.contains(&LockEvent::LockEnded { id: ada.id, ended }));
}

#[test]
fn s5_05_a_lock_is_taken_over_by_name_with_a_reason() {
    let mut story = Story::new();
    let ada = story.takes("ada", "src/**");
    let bob = story.waits("bob", "src/a.rs");
    let by = Holder::person("root");
    let why = |why: &str| Ask::TakeOver { id: ada.id, by: by.clone(), why: why.into() };
    assert_eq!(story.ask(why("")), Err(Refusal::NoReason));
    let Ok(LockOutcome::Held(lock)) = story.ask(why("ada is away")) else { panic!("taken") };
    assert_eq!((lock.fence, lock.claim.what().as_str()), (2, "src/**"));
    assert_eq!(story.ask(why("once more")), Err(Refusal::Lost { id: ada.id }));
    let theirs = Ask::Release { id: lock.id, by: Holder::person("ada") };
    assert_eq!(story.ask(theirs), Err(Refusal::NotYours { id: lock.id, holder: by }));
    story.gives_back("root", lock.id);
    assert_eq!(story.holder_of(bob).as_deref(), Some("bob"));
}

#[test]
fn s5_05_a_deadlock_is_found_and_the_youngest_waiter_is_refused() {
    let mut story = Story::new();
    story.takes("ada", "a");
    story.takes("bob", "b");
    story.takes("eve", "c");
    let ada = story.waits("ada", "b");
    let bob = story.waits("bob", "c");
    let refused = story.wants("eve", "a").expect_err("they would wait for ever");
    assert_eq!(
        refused.to_string(),
        "DEADLOCK: ada waits for b behind bob; bob waits for c behind eve; \
         eve waits for a behind ada"
    );
    assert!(story.log.iter().any(|event| event.name() == "deadlock_found"));
    assert_eq!(story.locks.waiting.keys().copied().collect::<Vec<_>>(), [ada, bob]);
    let eve = story.locks.held.values().find(|lock| lock.claim.what() == "c").map(|lock| lock.id);
    story.gives_back("eve", eve.expect("eve still has c"));
    assert_eq!(story.holder_of(bob).as_deref(), Some("bob"));
}

#[test]
fn s5_05_two_readers_who_both_want_to_write_do_not_wait_for_ever() {
    let mut story = Story::new();
    story.takes("ada", "read:src/**");
    let bob = story.takes("bob", "read:src/a.rs");
    let ada = story.waits("ada", "src/a.rs");
    let refused = story.wants("bob", "src/a.rs");
    assert!(matches!(refused, Err(Refusal::Deadlock { .. })), "{refused:?}");
    story.gives_back("bob", bob.id);
    assert_eq!(story.holder_of(ada).as_deref(), Some("ada"));
}

#[test]
fn s5_05_who_holds_what_others_wait_for_may_take_more_before_them() {
    let mut story = Story::new();
    let first = story.takes("ada", "src/a.rs");
    let bob = story.waits("bob", "src/**");
    let second = story.takes("ada", "src/b.rs");
    let eve = story.waits("eve", "src/c.rs");
    story.gives_back("ada", first.id);
    story.gives_back("ada", second.id);
    assert_eq!(story.holder_of(bob).as_deref(), Some("bob"));
    assert_eq!(story.holder_of(eve), None, "eve holds nothing, so eve came later");
}

#[test]
fn b_10_an_agent_loses_its_locks_with_its_turn() {
    let mut story = Story::new();
    let ask = |claim| Ask::Take { claim, on_conflict: OnConflict::Wait, wait: Millis(1000) };
    let Ok(LockOutcome::Held(lock)) = story.ask(ask(agent("builder", 1))) else { panic!("taken") };
    let Ok(LockOutcome::Waiting(bob)) = story.ask(ask(claim("bob", "src/a.rs"))) else { panic!() };
    let run = RunId(Uuid::nil());
    let keep = |attempt| Ask::Clear { run, keep: vec![(HandoffId(1), attempt)] };
    story.ask(keep(1)).expect("the turn goes on");
    assert!(story.locks.held.contains_key(&lock.id));
    story.ask(keep(2)).expect("the turn was fenced");
    assert!(!story.locks.held.contains_key(&lock.id));
    assert_eq!(story.holder_of(bob.id).as_deref(), Some("bob"));
    let Ok(LockOutcome::Waiting(_)) = story.ask(ask(agent("builder", 2))) else { panic!("waits") };
    story.ask(Ask::Clear { run, keep: Vec::new() }).expect("the run is over");
    assert!(story.locks.waiting.is_empty());
}

#[test]
fn s5_04_two_commands_of_one_person_exclude_each_other() {
    let mut story = Story::new();
    let at = |seat: &str| {
        let holder = Holder::person("ada").at(seat);
        let claim = Claim { holder, ..claim("ada", "src/**") };
        Ask::Take { claim, on_conflict: OnConflict::Skip, wait: Millis(0) }
    };
    let Ok(LockOutcome::Held(lock)) = story.ask(at("pid 1")) else { panic!("taken") };
    assert!(matches!(story.ask(at("pid 2")), Err(Refusal::Locked { .. })));
    let write = |holder: &Holder, fence| {
        story.locks.may_write(story.now, holder, ["src/a.rs"], fence).is_ok()
    };
    let ada = Holder::person("ada");
    assert!(!write(&ada, None) && write(&ada, Some(lock.fence)));
    assert!(write(&ada.clone().at("pid 1"), None) && !write(&ada.at("pid 2"), None));
    assert!(!write(&Holder::person("bob"), Some(lock.fence)), "a number is no key");
}

#[test]
fn s5_04_everything_has_a_limit() {
    let mut story = Story::new();
    let mut refused = |claim: Claim| {
        let answer = story.ask(Ask::Take { claim, on_conflict: OnConflict::Wait, wait: Millis(1) });
        assert!(matches!(answer, Err(Refusal::Limit { .. })), "{answer:?}");
    };
    let plain = claim("ada", "a");
    refused(Claim { patterns: Vec::new(), ..plain.clone() });
    refused(Claim {
        patterns: vec![plain.patterns[0].clone(); MOST_PATTERNS + 1],
        ..plain.clone()
    });
    refused(Claim { lease: Millis(0), ..plain.clone() });
    refused(Claim { lease: Millis::hours(25), ..plain.clone() });
    refused(Claim { reason: "x".repeat(LONGEST_TEXT + 1), ..plain.clone() });
    refused(Claim { holder: Holder::person(""), ..plain.clone() });
    refused(Claim { holder: Holder::person(&"x".repeat(LONGEST_TEXT + 1)), ..plain });
    let mut story = Story::new();
    for n in 0..MOST_LOCKS {
        let Decision { events, .. } = story.locks.decide(
            story.now,
            Ask::Take {
                claim: claim("ada", &format!("f{n}")),
                on_conflict: OnConflict::Skip,
                wait: Millis(0),
            },
        );
        events.iter().for_each(|event| story.locks.apply(event));
    }
    assert_eq!(story.locks.held.len(), MOST_LOCKS);
    let more = story.locks.decide(
        story.now,
        Ask::Take { claim: claim("bob", "x"), on_conflict: OnConflict::Wait, wait: Millis(1) },
    );
    assert!(matches!(more.answer, Err(Refusal::Limit { .. })) && more.events.is_empty());
}

#[derive(Clone, Debug)]
enum Deed {
    Take { who: usize, what: usize, shared: bool, on_conflict: OnConflict },
    Release { which: prop::sample::Index },
    Renew { which: prop::sample::Index },
    TakeOver { who: usize, which: prop::sample::Index },
    Pass { minutes: i64 },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let rule = prop_oneof![
        8 => Just(OnConflict::Wait), 1 => Just(OnConflict::Skip), 1 => Just(OnConflict::TakeOver)
    ];
    let deed = prop_oneof![
        6 => (0..4_usize, 0..6_usize, any::<bool>(), rule).prop_map(|(who, what, shared, on_conflict)| {
            Deed::Take { who, what, shared, on_conflict }
        }),
        2 => any::<prop::sample::Index>().prop_map(|which| Deed::Release { which }),
        1 => any::<prop::sample::Index>().prop_map(|which| Deed::Renew { which }),
        1 => (0..4_usize, any::<prop::sample::Index>())
            .prop_map(|(who, which)| Deed::TakeOver { who, which }),
        2 => (0..40_i64).prop_map(|minutes| Deed::Pass { minutes }),
    ];
    prop::collection::vec(deed, 1..40)
}

proptest! {
    #[test]
    fn s5_04_whatever_is_asked_the_locks_stay_sound(deeds in deeds()) {
        const WHO: [&str; 4] = ["ada", "bob", "eve", "dan"];
        const WHAT: [&str; 6] = ["src/**", "src/a.rs", "src/*.rs", "docs/x", "**/x", "src docs/y"];
        let mut story = Story::new();
        for deed in deeds {
            let ids: Vec<(LockId, Holder)> = story.locks.held.values()
                .map(|lock| (lock.id, lock.claim.holder.clone()))
                .chain(story.locks.waiting.values().map(|it| (it.id, it.claim.holder.clone())))
                .collect();
            let pick = |which: prop::sample::Index| {
                ids.get(which.index(ids.len().max(1))).cloned()
            };
            // Refusals are fine; the story checks the invariants after every step.
            let _ = match deed {
                Deed::Take { who, what, shared, on_conflict } => {
                    let mode = if shared { Mode::Shared } else { Mode::Exclusive };
                    let claim = Claim { mode, reason: "x".into(), ..claim(WHO[who], WHAT[what]) };
                    story.ask(Ask::Take { claim, on_conflict, wait: Millis::minutes(20) })
                }
                Deed::Release { which } => match pick(which) {
                    Some((id, by)) => story.ask(Ask::Release { id, by }),
                    None => continue,
                },
                Deed::Renew { which } => match pick(which) {
                    Some((id, by)) => story.ask(Ask::Renew { id, by, fence: None, lease: None }),
                    None => continue,
                },
                Deed::TakeOver { who, which } => match pick(which) {
                    Some((id, _)) => {
                        let by = Holder::person(WHO[who]);
                        story.ask(Ask::TakeOver { id, by, why: "x".into() })
                    }
                    None => continue,
                },
                Deed::Pass { minutes } => {
                    story.passes(minutes);
                    continue;
                }
            };
        }
        // Everything expires in the end.
        story.passes(100_000);
        prop_assert!(story.locks.waiting.is_empty());
        story.passes(100_000);
        prop_assert!(story.locks.held.is_empty());
        prop_assert_eq!(story.locks.deadline(), None);
    }
}
