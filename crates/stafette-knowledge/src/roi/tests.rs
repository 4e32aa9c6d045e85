use proptest::prelude::*;

use super::*;

fn option(id: &str, numbers: [f64; 5]) -> Candidate {
    let [benefit, cost, hours, risk, probability] = numbers.map(Some);
    Candidate {
        id: id.into(),
        title: id.into(),
        benefit,
        cost,
        hours,
        risk,
        probability,
        ..Candidate::default()
    }
}

fn ranked(options: &[Candidate]) -> Ranking {
    rank(options, &Weights::default(), &BTreeMap::new()).expect("a ranking")
}

#[test]
fn s1_08_the_breakdown_adds_up_to_the_total() {
    let mut build = option("build", [10_000.0, 500.0, 40.0, 1000.0, 0.8]);
    build.goals = vec![
        GoalLink { goal: "g1".into(), strength: 0.5 },
        GoalLink { goal: "g1".into(), strength: 0.2 },
    ];
    let ranking = ranked(&[option("buy", [8000.0, 4000.0, 2.0, 0.0, 1.0]), build]);
    let best = &ranking.ranked[0];
    assert_eq!(best.id, "build");
    let amounts: Vec<f64> = best.parts.iter().map(|part| part.amount.round()).collect();
    assert_eq!(amounts, [8000.0, 250.0, -500.0, -2000.0, -200.0]);
    assert!((best.total - 5550.0).abs() < 1e-6);
    assert!((best.ratio.expect("money goes in") - 2.22).abs() < 1e-9);
    assert_eq!(ranking.winner.as_deref(), Some("build"));
}

#[test]
fn s1_08_a_missing_number_is_named_and_never_taken_for_nothing() {
    let mut vague = option("vague", [9e9, 0.0, 0.0, 0.0, 1.0]);
    (vague.hours, vague.risk) = (None, None);
    let ranking = ranked(&[option("plain", [10.0, 0.0, 0.0, 0.0, 1.0]), vague]);
    assert_eq!(ranking.incomplete[0].missing, ["hours", "risk"]);
    assert_eq!(ranking.ranked.len(), 1);
    assert_eq!(ranking.winner, None, "what is not known could be better");
}

#[test]
fn s1_08_a_tie_has_no_winner_and_one_rank() {
    let numbers = [100.0, 10.0, 1.0, 0.0, 1.0];
    let other = option("c", [99.0, 10.0, 1.0, 0.0, 1.0]);
    let ranking = ranked(&[option("b", numbers), other, option("a", numbers)]);
    let places: Vec<_> = ranking.ranked.iter().map(|s| (s.id.as_str(), s.rank, s.tied)).collect();
    assert_eq!(places, [("a", 1, true), ("b", 1, true), ("c", 3, false)]);
    assert_eq!(ranking.winner, None);
    assert!(ranking.sensitivity.is_empty());
}

#[test]
fn s1_08_numbers_that_cannot_be_meant_are_refused_by_name() {
    let wrong = |option: Candidate| {
        rank(&[option], &Weights::default(), &BTreeMap::new()).expect_err("refused").to_string()
    };
    let likely = option("a", [1.0, 1.0, 1.0, 1.0, 1.5]);
    assert_eq!(wrong(likely), "option `a`: probability is 1.5, it must be a number from 0 to 1");
    assert!(wrong(option("a", [f64::NAN, 1.0, 1.0, 1.0, 1.0])).contains("benefit is NaN"));
    assert!(wrong(option("a", [1.0, -1.0, 1.0, 1.0, 1.0])).contains("cost is -1"));
    let twice = [option("a", [1.0; 5]), option("a", [1.0; 5])];
    let twice = rank(&twice, &Weights::default(), &BTreeMap::new());
    assert_eq!(twice, Err(RoiError::Twice { id: "a".into() }));
    let weights = Weights::default().with(Term::Risk, -1.0);
    assert!(rank(&[], &weights, &BTreeMap::new()).is_err());
}

#[test]
fn s1_10_what_was_learned_about_a_kind_of_work_changes_the_ranking() {
    let mut build = option("build", [1000.0, 0.0, 10.0, 0.0, 1.0]);
    build.kind = Some("code".into());
    let buy = option("buy", [1000.0, 600.0, 0.0, 0.0, 1.0]);
    let options = [build, buy];
    assert_eq!(ranked(&options).winner.as_deref(), Some("build"));
    let learned = BTreeMap::from([("code".to_owned(), 1.5)]);
    let later = rank(&options, &Weights::default(), &learned).expect("a ranking");
    assert_eq!(later.winner.as_deref(), Some("buy"));
    assert_eq!(later.ranked[1].hours_factor, 1.5);
}

fn any_option(id: &'static str) -> impl Strategy<Value = Candidate> {
    let money = || (0u32..1_000_000).prop_map(|cents| f64::from(cents) / 100.0);
    let share = || (0u8..=100).prop_map(|percent| f64::from(percent) / 100.0);
    (money(), money(), 0u8..200, money(), share(), share()).prop_map(
        move |(benefit, cost, hours, risk, probability, strength)| {
            let mut made = option(id, [benefit, cost, f64::from(hours), risk, probability]);
            made.goals = vec![GoalLink { goal: "g".into(), strength }];
            made
        },
    )
}

fn total(option: &Candidate) -> f64 {
    ranked(std::slice::from_ref(option)).ranked[0].total
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn s1_08_more_benefit_never_hurts_and_more_outlay_never_helps(
        base in any_option("a"),
        more in 0.0f64..10_000.0,
    ) {
        let with = |change: fn(&mut Candidate) -> &mut Option<f64>| {
            let mut changed = base.clone();
            let number = change(&mut changed);
            *number = number.map(|value| value + more);
            total(&changed)
        };
        prop_assert!(with(|o| &mut o.benefit) >= total(&base));
        prop_assert!(with(|o| &mut o.cost) <= total(&base));
        prop_assert!(with(|o| &mut o.hours) <= total(&base));
        prop_assert!(with(|o| &mut o.risk) <= total(&base));
        let mut surer = base.clone();
        surer.probability = Some(1.0);
        prop_assert!(total(&surer) >= total(&base) - 1e-6);
        let mut closer = base.clone();
        closer.goals[0].strength = 1.0;
        prop_assert!(total(&closer) >= total(&base));
    }

    #[test]
    fn s1_08_the_order_in_which_options_are_given_changes_nothing(
        a in any_option("a"), b in any_option("b"), c in any_option("c"),
    ) {
        let one = ranked(&[a.clone(), b.clone(), c.clone()]);
        let other = ranked(&[c, a, b]);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn s1_08_past_a_tipping_point_the_rival_wins_and_before_it_the_winner_stays(
        a in any_option("a"), b in any_option("b"), c in any_option("c"),
    ) {
        let options = [a, b, c];
        let ranking = ranked(&options);
        let winner = |term, weight: f64| {
            let weights = Weights::default().with(term, weight);
            rank(&options, &weights, &BTreeMap::new()).map(|ranking| ranking.ranked[0].id.clone())
        };
        for line in &ranking.sensitivity {
            for tip in [&line.below, &line.above].into_iter().flatten() {
                // A tipping point that is very close, or too far away to be tried, shows nothing.
                let way = tip.at - line.weight;
                if way.abs() < 1e-6 || tip.at > 1e9 || tip.at < 1e-6 { continue; }
                let before = winner(line.term, line.weight + way * 0.999);
                prop_assert_eq!(before.ok(), ranking.winner.clone(), "before {:?}", line);
                let past = winner(line.term, (line.weight + way * 1.001).max(0.0));
                prop_assert!(past.ok() != ranking.winner, "past {:?}", line);
            }
        }
    }
}
