//! Checks a recommendation: every principle is answered, and an approval violates none.

use stafette_core::Party;
use stafette_knowledge::constitution::{Constitution, LARGEST, PrincipleCheck, Recommendation};
use stafette_knowledge::rights::{Access, Data};

use super::Hand;
use crate::Stages;
use crate::threads::own_thread;

/// The name of the thread that Stafette records itself, for agents that have no other.
const THIS: &str = "this";

pub(super) async fn check(stages: &Stages, hand: &mut Hand<'_>) {
    if let Err(fault) = hand.actor.may(Access::Write, Data::Discussions) {
        return hand.object(fault.to_string());
    }
    let Some(said) = hand.get("recommendation").cloned() else { return };
    let Ok(recommendation) = serde_json::from_value::<Recommendation>(said) else {
        return hand.object("`recommendation` must be APPROVE, REJECT or REVISE");
    };
    if recommendation != Recommendation::Approve && matches!(hand.offer.to, Party::Agent(_)) {
        hand.object(format!(
            "only what is approved goes on to {}: ask a person what to do",
            hand.offer.to
        ));
    }
    answers(stages, hand, recommendation);
    thread(stages, hand).await;
}

fn answers(stages: &Stages, hand: &mut Hand<'_>, recommendation: Recommendation) {
    // A missing value is reported by the route, under its name.
    let given = |key| hand.get(key).is_some();
    let (has_answers, has_score) = (given("check_results"), given("score"));
    let score = match hand.read::<f64>("score") {
        Ok(score) => score,
        Err(why) if has_score => return hand.object(why),
        Err(_) => 0.0,
    };
    let answers: Vec<PrincipleCheck> = match hand.read("check_results") {
        Ok(answers) => answers,
        Err(why) if has_answers => {
            return hand.object(format!(
                "{why}; give a list of {{\"principle\": \"1\", \"verdict\": \"holds\", \
                 \"reason\": \"…\"}}, with holds, violated or not_applicable"
            ));
        }
        Err(_) => Vec::new(),
    };
    let constitution = match constitution(stages) {
        Ok(Some(constitution)) => constitution,
        Ok(None) => return,
        Err(why) => return hand.object(why),
    };
    if let Err(objections) = constitution.recommend(&answers, score, recommendation) {
        hand.offer.objections.extend(objections.iter().map(ToString::to_string));
    }
}

/// Returns the current constitution, if there is one.
pub(crate) fn constitution(stages: &Stages) -> Result<Option<Constitution>, String> {
    let Some(path) = &stages.0.settings.constitution else { return Ok(None) };
    let text = stages.text(path, LARGEST as u64).map_err(|fault| fault.to_string())?;
    let parsed = Constitution::parse(&text);
    parsed.map(Some).map_err(|error| format!("{path} cannot be used: {error}"))
}

/// Checks that the discussion behind it exists.
async fn thread(stages: &Stages, hand: &mut Hand<'_>) {
    let own = own_thread(hand.run.id, hand.offer.from.as_str());
    let Some(named) = hand.get("thread_id").and_then(|id| id.as_str()).map(str::to_owned) else {
        return;
    };
    if named == THIS {
        hand.offer.outputs.insert("thread_id".into(), own.into());
    } else if named != own
        && let Err(error) = stages.0.history.thread(&named).await
    {
        hand.object(format!("{error}; `{THIS}` names the talk of this very run"));
    }
}
