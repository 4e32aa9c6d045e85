//! Inputs that are too large together are cut, and what was cut can still be had whole: the note in its
//! place names the handoff whose record has it.

use serde_json::Value;

use super::Run;
use crate::fields;
use crate::handoff::State;
use crate::{Handoff, HandoffId};

/// Cuts these inputs of a handoff, and the same values in the answers that brought them. `from` is
/// named where no record is known that has the value.
pub(super) fn cut(run: &mut Run, id: HandoffId, keys: &[String], from: HandoffId) {
    change(run, id, keys, |run, handoff| {
        fields::cut(&mut handoff.inputs, keys, |key, value| holder(run, key, value, from));
    });
    cut_answers(run, id, keys, from);
}

/// Leaves these inputs of a handoff out.
pub(super) fn leave_out(run: &mut Run, id: HandoffId, keys: &[String], from: HandoffId) {
    change(run, id, keys, |run, handoff| {
        fields::leave_out(&mut handoff.inputs, keys, |key, value| holder(run, key, value, from));
    });
}

/// Leaves these values out of the answers of a handoff.
pub(super) fn leave_out_of_answers(run: &mut Run, id: HandoffId, keys: &[String], from: HandoffId) {
    change(run, id, keys, |run, handoff| {
        for answer in &mut handoff.answers {
            fields::leave_out(&mut answer.outputs, keys, |key, value| {
                holder(run, key, value, from)
            });
        }
    });
}

/// Cuts these values in the answers of a handoff.
pub(super) fn cut_answers(run: &mut Run, id: HandoffId, keys: &[String], from: HandoffId) {
    change(run, id, keys, |run, handoff| {
        for answer in &mut handoff.answers {
            fields::cut(&mut answer.outputs, keys, |key, value| holder(run, key, value, from));
        }
    });
}

fn change(run: &mut Run, id: HandoffId, keys: &[String], change: impl Fn(&Run, &mut Handoff)) {
    if keys.is_empty() {
        return;
    }
    let Some(mut handoff) = run.handoff(id).cloned() else { return };
    change(run, &mut handoff);
    if let Some(changed) = run.handoff_mut(id) {
        *changed = handoff;
    }
}

/// Returns the handoff whose record has the value.
fn holder(run: &Run, key: &str, value: &Value, from: HandoffId) -> HandoffId {
    let mut all = run.handoffs.values().rev();
    all.find(|handoff| has(handoff, key, value)).map_or(from, |handoff| handoff.id)
}

/// True if the record of a handoff has a value whole, in the offer or in an answer, for good.
fn has(handoff: &Handoff, key: &str, value: &Value) -> bool {
    let answer = match &handoff.state {
        State::Closed(closing) => Some(&closing.response.outputs),
        _ => None,
    };
    let gathered = handoff.gathered.iter().map(|answer| &answer.outputs);
    let mut places = answer.into_iter().chain([&handoff.offer.outputs]).chain(gathered);
    places.any(|fields| fields.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fields::{MAX, size};
    use crate::run::story::{Story, ask, fields, h};
    use crate::{Offer, Outcome, Response, TurnResult};

    const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

    /// A lead that waits for the answers of four members to the same question.
    fn four_are_asked() -> Story {
        let agents = MEMBERS.map(|name| format!("{name}.runner = \"scripted\""));
        let routes = MEMBERS.map(|name| format!("{{ from = \"lead\", to = \"{name}\" }}"));
        let mut story = Story::new(&format!(
            "workflow = {{ name = \"four\", entry = \"lead\" }}
             agents = {{ lead.runner = \"scripted\", {} }}
             routes = [{}]
             limits = {{ cooldown = 0, handoffs_per_item = 99 }}",
            agents.join(", "),
            routes.join(", "),
        ));
        story
            .hands(h(1), MEMBERS.map(|name| Offer { item: Some(name.into()), ..ask(name) }).into());
        story
    }

    #[test]
    fn b_02_many_answers_to_one_question_are_of_bounded_size_and_each_can_be_had_whole() {
        let mut story = four_are_asked();
        for (number, name) in (2..).zip(MEMBERS) {
            let report = name.repeat(600_000);
            story.answers(h(number), Outcome::Resolved, json!({ "report": report, "by": name }));
        }
        let order = story.run.outbox().next().expect("the lead goes on");
        assert_eq!(order.inputs["report"], "d".repeat(600_000), "the last one fits");
        assert!(order.answers.iter().map(|answer| size(&answer.outputs)).sum::<usize>() <= MAX);
        for ((number, name), answer) in (2..).zip(MEMBERS).zip(&order.answers) {
            let note = &answer.outputs["report"]["$cut"];
            assert_eq!(note["handoff"], format!("h{number}"), "its record has it whole");
            assert_eq!(answer.outputs["by"], name);
        }
    }

    #[test]
    fn b_02_many_small_values_are_of_bounded_size_together_as_large_ones_are() {
        let mut story = four_are_asked();
        for (number, name) in (2..).zip(MEMBERS) {
            let small = (0..5000).map(|key| (format!("{name}-{key}"), "x".repeat(90).into()));
            let mut outputs: crate::Fields = small.collect();
            outputs.insert("by".to_owned(), name.into());
            story.answers(h(number), Outcome::Resolved, outputs.into());
        }
        let order = story.run.outbox().next().expect("the lead goes on");
        let of_answers: usize = order.answers.iter().map(|answer| size(&answer.outputs)).sum();
        assert!(size(&order.inputs).max(of_answers) <= MAX + 500, "{of_answers}");
        assert_eq!(order.inputs["by"], "d", "the largest are left out");
        assert!(order.inputs["$cut"]["keys"].as_u64().is_some_and(|keys| keys > 5000));
        assert!(order.inputs["$cut"]["handoffs"][0].as_str().is_some_and(|id| id.starts_with('h')));
        let whole = story.closing(h(2)).response.outputs;
        assert_eq!(whole.len(), 5001, "the record has them whole");
    }

    #[test]
    fn b_02_what_several_give_in_part_is_of_bounded_size() {
        let missing = crate::MissingInput {
            key: "size".into(),
            expected_type: "string".into(),
            description: String::new(),
            source: None,
        };
        let mut story = Story::new(
            "workflow = { name = \"chain\", entry = \"lead\" }
             agents = { lead.runner = \"scripted\", a.runner = \"scripted\", \
                        b.runner = \"scripted\", c.runner = \"scripted\" }
             routes = [{ from = \"lead\", to = \"a\", alternatives = [\"b\", \"c\"] }]
             limits = { cooldown = 0 }
             retries = { max = 0 }",
        );
        story.hands(h(1), vec![Offer { missing: vec![missing], ..ask("a") }]);
        for (number, name) in [(2, "a"), (3, "b")] {
            let part = Response {
                outputs: fields(json!({ name: name.repeat(MAX - 4000) })),
                ..Response::new(name.into(), Outcome::Failed)
            };
            story.ends(h(number), TurnResult::new(part));
        }
        let last = story.run.handoff(h(4)).unwrap_or_else(|| panic!("{}", story.transcript()));
        let gathered: usize = last.gathered.iter().map(Response::size).sum();
        assert!(last.gathered.len() == 2 && gathered <= MAX, "{gathered}");
        assert_eq!(last.gathered[1].outputs["b"]["$cut"]["handoff"], "h3", "it has it whole");
        assert_eq!(story.closing(h(3)).response.outputs["b"], "b".repeat(MAX - 4000));
    }

    #[test]
    fn b_02_what_many_say_beside_their_values_is_of_bounded_size_too() {
        let mut story = four_are_asked();
        for number in 2..6 {
            let answer = story.run.handoff(h(number)).expect("a member").offer.to.clone();
            let response = Response {
                summary: "s".repeat(400_000),
                outputs: fields(json!({ "size": number })),
                ..Response::new(answer, Outcome::Resolved)
            };
            story.ends(h(number), TurnResult::new(response));
        }
        let order = story.run.outbox().next().expect("the lead goes on");
        assert!(order.answers.iter().map(Response::words).sum::<usize>() <= MAX);
        assert_eq!(order.answers[3].outputs["size"], 5);
        assert_eq!(story.closing(h(5)).response.summary.len(), 400_000, "the record has it whole");
    }

    #[test]
    fn b_02_an_answer_is_measured_with_everything_that_it_says() {
        let mut story = four_are_asked();
        story.accept(h(2));
        let response = Response {
            recommendations: vec!["r".repeat(MAX / 2); 2],
            failure: Some("f".repeat(10)),
            ..Response::new("a".into(), Outcome::Resolved)
        };
        let result = TurnResult::new(response);
        let why = story.run.check_result(story.key(h(2)), &result).expect_err("too large");
        assert!(why[0].contains("1048586 bytes"), "{why:?}");
    }
}
