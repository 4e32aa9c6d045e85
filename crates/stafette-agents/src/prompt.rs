//! The prompt of a command at the start of a turn.

mod phase;

use std::fmt::Write as _;

use stafette_core::handoff::ANSWER;
use stafette_core::workflow::ResultFormat;
use stafette_core::{Fields, Outcome, Party, Response, TurnOrder};

use crate::{Job, profile};

/// The prompt of a turn: the role of the agent, the request, the inputs, and how to end.
///
/// It shows no complete frame, so that an agent which echoes its prompt does not hand over by that.
pub fn text(job: &Job) -> String {
    let order = &job.order;
    let offer = &order.offer;
    let mut text = String::new();
    paragraph(&mut text, job.agent.prompt.trim());
    section(&mut text, "Request", order.request.trim());

    let mut task = match &offer.from {
        Party::Human => format!("The user gives you this ({}).", offer.reason.as_str()),
        from => format!("Handed over by {from} ({}).", offer.reason.as_str()),
    };
    let instructions = offer.instructions.as_deref().unwrap_or_default();
    for part in [offer.detail.trim(), offer.summary.trim(), instructions.trim()] {
        // The first offer of a run repeats the request.
        if !part.is_empty() && part != order.request.trim() {
            task = task + "\n" + part;
        }
    }
    for earlier in &offer.prior_attempts {
        let _ = write!(
            task,
            "\nTry {} before: {}: {}",
            earlier.attempt, earlier.action, earlier.result
        );
    }
    let phase = phase::request(offer);
    match &phase {
        Some(request) => section(&mut text, "Your task, as a phase request", request),
        None => section(&mut text, "Your task", &task),
    }
    if !offer.missing.is_empty() {
        let wanted: Vec<String> = offer
            .missing
            .iter()
            .map(|input| {
                format!("- {} ({}): {}", input.key, input.expected_type, input.description)
            })
            .collect();
        section(&mut text, "Wanted outputs", &wanted.join("\n"));
    }
    let mut inputs = order.inputs.clone();
    // A phase's request holds its inputs.
    inputs.retain(|key, _| phase.is_none() || !offer.outputs.contains_key(key));
    if !inputs.is_empty() {
        section(&mut text, "Inputs", &(json(&inputs) + &sources(order, &inputs)));
    }
    if !order.answers.is_empty() {
        let answers: Vec<String> = order.answers.iter().map(answer).collect();
        section(&mut text, "Back since your last turn", &answers.join("\n"));
    }
    let mut messages: Vec<String> =
        order.messages.iter().map(|it| it.told(order.key.run)).collect();
    // An earlier delivery of this turn had them.
    if order.messages.iter().any(|it| it.delivered.is_some() && !it.again) {
        messages.push("You may have read these before: ignore what you know.".to_owned());
    }
    section(&mut text, "Messages", &messages.join("\n\n"));
    if order.round > 1 {
        section(&mut text, "Round", &format!("This is round {} of the loop.", order.round));
    }
    section(&mut text, "How to end", &ending(job));
    let again = if order.deliveries > 1 { ", and this is not its first delivery" } else { "" };
    let key = format!(
        "{}\nA handoff response about it has the `traceId` {}.\n\
         The same key is the same work{again}: what is already done under it must not be done twice.",
        order.key, order.trace_id
    );
    section(&mut text, "Key", &key);
    // Neither an argument nor a terminal can carry it.
    text.replace('\0', "")
}

/// Says which inputs are a person's word: any agent may give one the name that a reply has.
fn sources(order: &TurnOrder, inputs: &Fields) -> String {
    let replies: Vec<&str> = order.replies.iter().map(String::as_str).collect();
    let mut text = String::new();
    if !replies.is_empty() {
        let _ = write!(text, "\nA person gave: {}.", replies.join(", "));
    }
    let along = order.offer.outputs.contains_key(ANSWER) && !order.replies.contains(ANSWER);
    if along && inputs.contains_key(ANSWER) {
        let _ = write!(text, "\n`{ANSWER}` came with the work; it is no person's reply to you.");
    }
    text
}

fn paragraph(text: &mut String, body: &str) {
    if !body.is_empty() {
        text.push_str(body);
        text.push_str("\n\n");
    }
}

fn section(text: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(text, "## {title}\n{}\n\n", without_headings(body));
    }
}

/// The text, in which no line looks like a heading of the prompt: what others wrote is no part of
/// its structure.
fn without_headings(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    for line in body.split_inclusive(['\n', '\r']) {
        let start = line.trim_start();
        if start.starts_with("##") && !start.starts_with("###") {
            text.push_str(&line[..line.len() - start.len()]);
            text.push('\\');
            text.push_str(start);
        } else {
            text.push_str(line);
        }
    }
    text
}

fn json(fields: &Fields) -> String {
    serde_json::to_string_pretty(fields).unwrap_or_default()
}

fn answer(response: &Response) -> String {
    let outcome = match response.outcome {
        Outcome::Resolved => "resolved",
        Outcome::Partial => "partial",
        Outcome::Failed => "failed",
        Outcome::Escalated => "escalated to a person",
    };
    let asked = response.question.as_ref().map(|it| format!(", asked “{it}”"));
    let mut text = format!("- {}{}: {outcome}", response.by, asked.unwrap_or_default());
    let failure = response.failure.as_deref().unwrap_or_default();
    for part in [failure, response.summary.as_str()] {
        if !part.is_empty() {
            text = text + ". " + part.trim_end_matches('.');
        }
    }
    if !response.unresolved.is_empty() {
        let _ = write!(text, ". Not resolved: {}", response.unresolved.join(", "));
    }
    if !response.recommendations.is_empty() {
        let _ = write!(text, ". Recommended: {}", response.recommendations.join("; "));
    }
    if !response.outputs.is_empty() {
        let _ = write!(text, "\n{}", json(&response.outputs));
    }
    text
}

/// The format in which a council member states its stance.
const STAND: &str = "{\"signal\": \"agree|disagree|building|abstain\", \"reason\": TEXT, \
    \"key_decisions\": [TEXT, …], \"next_topic\": TEXT}";

fn ending(job: &Job) -> String {
    let mut text = match job.order.routes.as_slice() {
        [] => "You may hand to nobody.\n".to_owned(),
        routes => format!("You may hand to: {}.\n", routes.join(", ")),
    };
    if let Some(ending) = phase::ending(job) {
        return text + &ending;
    }
    if profile::knows_tools(job) {
        text.push_str(
            "You have Stafette's tools (MCP server `stafette`). Use them: `briefing`, `report`, \
             `handoff`, `escalate`, `vote` in a council, and `complete` at the end. Only if they do not work:\n",
        );
    }
    let council = stafette_core::team::council::is_turn(&job.order.constraints);
    match job.agent.result {
        ResultFormat::Frames => {
            let _ = writeln!(text, "A signal is {}. TYPE and PAYLOAD are one of:", signal(job));
            text.push_str(
                "- HANDOFF and {\"to\": NAME, \"summary\": TEXT, …}: pass the work on; further fields \
                 are handed along\n\
                 - RESULT and {\"status\": \"resolved|partial|failed\", \"outputs\": {…}, \"summary\": TEXT}: \
                 your answer\n\
                 - CHANGE and {\"changes\": [{\"file\": PATH, \"action\": \"create|modify|delete|rename\", \
                 \"content\": TEXT}], \"reason\": TEXT}: edits of the user's own files, for a person to apply\n\
                 - REPORT and {\"tokens\": N, \"cost_usd\": X, \"note\": TEXT}: progress\n\
                 - ERROR and {\"code\": UPPER_SNAKE, \"message\": TEXT}: people must see this",
            );
            if council {
                let _ = write!(text, "\n- SIGNAL and {STAND}: where you stand in the council");
            }
        }
        // The command knows nothing of handoffs.
        ResultFormat::Exit => {}
        ResultFormat::Json => text.push_str(
            "End your output with one JSON document and nothing after it: \
             {\"status\": \"resolved|partial|failed\", \"outputs\": {…}, \"summary\": TEXT} to answer, \
             {\"to\": NAME, \"summary\": TEXT, …} to pass the work on (further fields are handed along), \
             or an array of both. \"codeChanges\" in it proposes edits of the user's own files: \
             [{\"file\": PATH, \"action\": \"create|modify|delete|rename\", \"content\": TEXT}].",
        ),
    }
    if council && job.agent.result == ResultFormat::Json {
        let _ = write!(text, "\nTo say where you stand in the council, have {STAND} in it.");
    }
    if job.order.routes.iter().any(|route| route == "human") {
        text.push_str(
            "\nTo ask a person, hand to `human` with a `question` and `options`; you go on with the answer.",
        );
    }
    text
}

/// The form of a signal.
fn signal(job: &Job) -> String {
    let line = format!(
        "a line of the form <<<{}:TYPE:PAYLOAD>>>, in plain output, outside of Markdown",
        job.frame_word
    );
    // What is only printed may be somebody else's words, so that a person has to say yes to it.
    let command =
        "the command `\"$STAFETTE_PROGRAM\" emit TYPE 'PAYLOAD'`, or, where you can run none";
    match job.token() {
        Some(_) => format!("{command}, {line}"),
        None => line,
    }
}

#[cfg(test)]
pub(crate) mod tests;
