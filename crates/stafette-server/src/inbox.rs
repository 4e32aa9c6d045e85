//! The inbox: questions that wait for a person.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::handoff::{About, Question};
use stafette_core::run::budget::{Grant, Purse};
use stafette_core::{Fields, HandoffId, Input, Party, Reply, RunId, State as Standing};
use stafette_engine::Right;

use crate::handoffs::Row;
use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Body, Named};
use crate::runs::Shown;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "inbox";
    GET "/v1/inbox" => list, Read, "listQuestions", "List the open questions, the oldest first";
    POST "/v1/inbox/{question}" => answer, Answer, "answerQuestion", "Answer a question";
}

async fn list(State(edge): State<Edge>) -> Result<Json<Vec<Row>>, Problem> {
    let rows = edge.engine.log().questions().await?;
    Ok(Json(rows.iter().map(Row::of).collect::<Result<_, _>>()?))
}

/// A question, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheQuestion {
    /// Id of the question: `RUN:h5`, `h5` or `5`.
    question: String,
}

/// Answer to a question: text, values, or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// One of the options, or free text.
    #[serde(default)]
    text: String,
    /// A value for each missing input.
    #[serde(default)]
    values: Fields,
    /// Name of the person who answers, for the record.
    #[serde(default)]
    by: String,
}

/// Confirms that the answer was accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// Handoff id of the question.
    answered: HandoffId,
    /// What the run may use from now on, if the answer has raised its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    raised: Option<String>,
    /// The run after the answer.
    run: Shown,
}

async fn answer(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheQuestion { question }): Named<TheQuestion>,
    Body(Answer { text, values, by }): Body<Answer>,
) -> Result<Json<Answered>, Problem> {
    if text.trim().is_empty() && values.is_empty() {
        return Err(Problem::new(422, "empty_answer", "The answer is empty"));
    }
    let (run, handoff) = find(&edge, &question).await?;
    let state = edge.engine.state(run).await?;
    if state.handoff(handoff).is_some_and(|asked| matches!(asked.state, Standing::Closed(_))) {
        return Err(answered(handoff));
    }
    let asked = state.handoff(handoff).and_then(|asked| asked.offer.question.as_ref());
    principal.may(asked.map_or(Right::Answer, Right::to_answer))?;
    let by = principal.signed(by);
    let text = match asked {
        Some(question) => chosen(question, &text).unwrap_or(Ok(text))?,
        None => text,
    };
    match edge.engine.send(run, Input::Answer { handoff, values, text, by }).await? {
        Reply::Answered => {}
        Reply::Unfit { complaints } => {
            let problem = Problem::new(422, "unfit_answer", "The answer is not what was asked for");
            let options = asked.map(|question| question.options.join("|")).unwrap_or_default();
            let with = asked.map(|question| question.answer_with.clone()).unwrap_or_default();
            let with = if with.is_empty() { options } else { with };
            let fix = format!("stafette answer {} {with}", handoff.0);
            return Err(problem.because(complaints.join("; ")).fix(fix));
        }
        _ => return Err(answered(handoff)),
    }
    let after = edge.engine.state(run).await?;
    let raised = grown(&state.purse, &after.purse);
    Ok(Json(Answered { answered: handoff, raised, run: Shown::of(&edge, run).await? }))
}

fn answered(handoff: HandoffId) -> Problem {
    let what = format!("{handoff} has its answer already");
    let why = "the first answer counts, or the run did not need it any more";
    Problem::new(409, "already_answered", what).because(why)
}

/// The option that a number names: the one that begins with it, or else the one at this place of the
/// list. `None` for any other text, and where a number can be an answer of its own.
fn chosen(question: &Question, text: &str) -> Option<Result<String, Problem>> {
    let text = text.trim();
    let digits = text.trim_end_matches(['.', ')']);
    let number: usize = digits.parse().ok()?;
    // As they are shown: each once, and none that says nothing.
    let mut options: Vec<&str> = Vec::new();
    for option in question.options.iter().map(String::as_str) {
        if !option.trim().is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let is_number = |option: &&str| option.trim().parse::<f64>().is_ok();
    let takes_numbers = matches!(question.about, About::Budget | About::Recovery(_));
    if options.is_empty() || takes_numbers || options.iter().any(is_number) {
        return None;
    }
    let begins = |option: &&&str| {
        let rest = option.trim_start().strip_prefix(digits);
        rest.is_some_and(|rest| rest.starts_with(['.', ')', ':']))
    };
    let at_place = || number.checked_sub(1).and_then(|place| options.get(place));
    Some(match options.iter().find(begins).or_else(at_place) {
        Some(option) => Ok((*option).to_owned()),
        None => {
            let listed: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
            let problem = Problem::new(422, "unfit_answer", "The answer is not what was asked for");
            let why = format!("there are {} options: {}", options.len(), listed.join(", "));
            Err(problem.because(why).fix("answer with one of them, or with its number in the list"))
        }
    })
}

/// What the limits are that were raised in between, such as `$10.00 for the run`.
fn grown(before: &Purse, after: &Purse) -> Option<String> {
    let (from, to) = (&before.limit, &after.limit);
    let mut limit = Grant::default();
    if to.money > from.money {
        limit.money = to.money;
    }
    if to.tokens > from.tokens {
        limit.tokens = to.tokens;
    }
    if to.handoffs > from.handoffs {
        limit.handoffs = to.handoffs;
    }
    if to.time > from.time {
        limit.time = to.time;
    }
    let run = (!limit.is_nothing()).then(|| format!("{} for the run", limit.words()));
    let mut raised: Vec<String> = run.into_iter().collect();
    for (agent, account) in &after.agents {
        let more = before.agents.get(agent).map(|before| before.granted).unwrap_or_default();
        if account.granted != more {
            let granted = account.granted.words();
            raised.push(format!("{granted} on top of its own for {agent}"));
        }
    }
    (!raised.is_empty()).then(|| raised.join(", "))
}

/// Returns true if the handoff is a question to a person, open or answered.
async fn was_asked(edge: &Edge, run: RunId, handoff: HandoffId) -> Result<bool, Problem> {
    let row = edge.engine.log().handoff(run, handoff).await?;
    Ok(row.is_some_and(|row| row.to == Party::Human.as_str()))
}

/// Finds the question for `RUN:h5`, `h5` or `5`.
async fn find(edge: &Edge, text: &str) -> Result<(RunId, HandoffId), Problem> {
    let (run, name) = match text.rsplit_once(':') {
        Some((run, name)) => (Some(crate::runs::find(edge, run).await?), name),
        None => (None, text),
    };
    let name = if name.starts_with('h') { name.to_owned() } else { format!("h{name}") };
    let handoff: HandoffId = name.parse().map_err(|error: stafette_core::id::NotAHandoff| {
        Problem::new(422, "not_a_handoff", error.to_string())
    })?;
    let open = edge.engine.log().questions().await?;
    let mut fitting = open
        .iter()
        .filter(|row| row.id == handoff && run.is_none_or(|run| row.run == run))
        .map(|row| (row.run, row.id));
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        // The run itself reports the outcome of a question that is no longer open.
        (None, _)
            if let Some(run) = run
                && was_asked(edge, run, handoff).await? =>
        {
            Ok((run, handoff))
        }
        (None, _) => {
            Err(Problem::new(404, "no_question", format!("No open question is named {name}")))
        }
        (Some((run, _)), Some(_)) => {
            let problem = Problem::new(
                409,
                "ambiguous",
                format!("The question {name} is asked in several runs"),
            );
            Err(problem.because(format!("name the run too, such as {}:{name}", run.short())))
        }
    }
}
