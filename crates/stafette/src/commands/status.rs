//! `status`, `cancel`, `pause`: shows the state of runs, and stops them.

use serde_json::{Value, json};
use stafette_engine::{CouncilView, MemberView, RunView};

use super::{Context, daemon, daemon_of_runs, run_path};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::short;
use crate::project::person;

/// The newest runs that are listed even if they have ended.
const NEWEST: usize = 100;

/// The most runs in a list whose trouble is shown.
const EXPLAINED: usize = 20;

pub(crate) async fn run(context: &Context, arguments: cli::Status) -> Result<Exit, Failure> {
    if arguments.line {
        return super::here::line(context).await;
    }
    let client = daemon_of_runs(context).await?;
    let output = context.output;
    super::alerts::warn(output, &client).await;
    super::knowledge::warn(output, &client).await;
    if let Some(run) = &arguments.run {
        let view: Value = client.get(&run_path(Some(run), "")).await?;
        match output.json {
            true => output.data(&view),
            false => show(context, &view)?,
        }
        return Ok(Exit::Ok);
    }
    let newest: Vec<RunView> = client.get(&format!("/v1/runs?limit={NEWEST}")).await?;
    let is_cut = newest.len() == NEWEST;
    let mut runs = super::unfinished(&client).await?;
    runs.extend(newest.into_iter().filter(RunView::is_over));
    runs.sort_by_key(|view| std::cmp::Reverse(view.run));
    if is_cut {
        output.say(format!(
            "of the runs that have ended, only those among the newest {NEWEST} are shown"
        ));
    }
    if output.json {
        output.data(&runs);
        return Ok(Exit::Ok);
    }
    if runs.is_empty() {
        output.say("No runs yet. Begin one with `stafette run \"…\"`.");
        return Ok(Exit::Ok);
    }
    let rows = runs.iter().map(|view| {
        vec![
            view.run.short(),
            words(view),
            at_work(view),
            view.tally.handoffs.to_string(),
            view.purse.spent.cost(),
            short(&view.request, 60),
        ]
    });
    output.table(&["run", "status", "at work", "handoffs", "spent", "request"], rows.collect());
    for view in runs.iter().filter(|view| !view.is_over()).take(EXPLAINED) {
        let one: Value = client.get(&run_path(Some(&view.run.to_string()), "")).await?;
        if let Some(trouble) = one["trouble"].as_str() {
            output.say(format!("{}: {trouble}", view.run.short()));
        }
    }
    Ok(Exit::Ok)
}

/// `1 retry`, `2 retries`.
pub(super) fn number(number: impl Into<u64>, one: &str, more: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A status that ends `the run …`.
pub(super) fn sentence(status: &str) -> String {
    match status {
        "succeeded" => "the run has succeeded".to_owned(),
        "failed" => "the run has failed".to_owned(),
        status => format!("the run is {status}"),
    }
}

/// Who is at work, and whose agents have yet to take the turn that waits for them.
fn at_work(view: &RunView) -> String {
    let offered = view.offered.iter().map(|agent| format!("{agent} (not taken yet)"));
    view.working.iter().cloned().chain(offered).collect::<Vec<_>>().join(", ")
}

/// The handoffs of a run that has succeeded which were done in part only, as its end names them.
pub(super) fn in_part(view: &RunView) -> Option<&str> {
    view.why.as_deref()?.split_once("done in part: ").map(|(_, parts)| parts)
}

fn words(view: &RunView) -> String {
    match &view.waiting_on {
        _ if view.stopped => "stopped".to_owned(),
        // That between two handoffs, or the one before another attempt.
        Some(on) if on == "cooldown" => "waiting for a pause to end".to_owned(),
        None if view.working.is_empty() && !view.offered.is_empty() => {
            format!("waiting for {}", view.offered.join(", "))
        }
        Some(on) => format!("waiting for {on}"),
        None => match in_part(view) {
            Some(parts) => format!("{}, part of it: {parts}", view.status),
            None => view.status.clone(),
        },
    }
}

fn show(context: &Context, value: &Value) -> Result<(), Failure> {
    let view: RunView =
        serde_json::from_value(value.clone()).map_err(|error| crate::client::unreadable(&error))?;
    let tally = &view.tally;
    let mut rows = vec![
        vec!["run".to_owned(), view.run.to_string()],
        vec!["request".to_owned(), short(&view.request, 100)],
        vec!["workflow".to_owned(), view.workflow.clone()],
        vec!["status".to_owned(), words(&view)],
        vec!["at work".to_owned(), at_work(&view)],
        vec![
            "handoffs".to_owned(),
            format!(
                "{}, {} refused, {}, {}, {}",
                tally.handoffs,
                tally.refused,
                number(tally.escalated, "question", "questions"),
                number(tally.retries, "retry", "retries"),
                number(tally.rounds, "round", "rounds"),
            ),
        ],
        vec![
            "spent".to_owned(),
            format!(
                "{} of {} ({} set aside), {} {}",
                view.purse.spent.cost(),
                view.purse.limit.money,
                view.purse.reserved.money,
                view.purse.spent.count(),
                if view.purse.spent.tokens == 1 { "token" } else { "tokens" },
            ),
        ],
        vec!["began".to_owned(), view.created_at.clone()],
        vec!["changed".to_owned(), view.updated_at.clone()],
    ];
    let unknown = view.purse.spent.unknown.turns();
    if unknown > 0 {
        let turns = crate::output::count(unknown as usize, "turn");
        let text = format!("{turns}: the budget does not see what they cost");
        rows.push(vec!["unknown".to_owned(), text]);
    }
    if let Some(why) = &view.why {
        rows.push(vec!["because".to_owned(), why.clone()]);
    }
    for held in &view.held {
        rows.push(vec![
            "waits".to_owned(),
            format!("{} {}: {}", held.handoff, held.agent, held.why),
        ]);
    }
    if let Some(council) = &view.council {
        rows.extend(seats(council));
    }
    if let Some(trouble) = value["trouble"].as_str() {
        rows.push(vec!["trouble".to_owned(), trouble.to_owned()]);
    }
    context.output.table(&["", ""], rows);
    for line in view.left.iter().flat_map(|left| super::changes::left(left)) {
        context.output.line(line);
    }
    if let Some(phases) = &view.phases {
        super::phases::show(context.output, phases);
    }
    Ok(())
}

/// The state of a council and of each member.
fn seats(council: &CouncilView) -> Vec<Vec<String>> {
    let member = |member: &MemberView| vec![String::new(), seat(council, member)];
    let head = [
        vec!["council".to_owned(), short(&council.topic, 100)],
        vec!["stands".to_owned(), stands(council)],
    ];
    head.into_iter().chain(council.members.iter().map(member)).collect()
}

/// The state of a council, in a sentence.
pub(super) fn stands(council: &CouncilView) -> String {
    let voted = council.members.iter().filter(|member| member.turns > 0).count();
    match &council.why {
        Some(why) => why.clone(),
        None if council.sealed => {
            format!("the first vote is blind: {voted} of {} have voted", council.members.len())
        }
        None => {
            format!("{} of {} agree, {} are needed", council.agreed, council.total, council.needed)
        }
    }
}

/// The stance of a member, in a few words.
pub(super) fn seat(council: &CouncilView, member: &MemberView) -> String {
    let word = match member.signal {
        Some(signal) => signal.to_string(),
        None if member.turns == 0 => "yet to speak".to_owned(),
        None if council.sealed => "has voted".to_owned(),
        None => "says nothing".to_owned(),
    };
    let weight = if member.weight == 1 { String::new() } else { format!(" ×{}", member.weight) };
    format!("{}{weight}: {word}", member.member)
}

pub(crate) async fn cancel(context: &Context, arguments: cli::Cancel) -> Result<Exit, Failure> {
    let body = json!({ "by": person(), "why": arguments.why });
    steer(context, arguments.run.as_deref(), "/cancel", &body).await
}

pub(crate) async fn pause(context: &Context, arguments: cli::OneRun) -> Result<Exit, Failure> {
    steer(context, arguments.run.as_deref(), "/pause", &json!({ "by": person() })).await
}

/// The only run that has not ended, if none is named; of several, one has to be. `None` if all have
/// ended: then the daemon says what there is to say about the newest.
async fn the_only(client: &Client, what: &str) -> Result<Option<String>, Failure> {
    let runs = super::unfinished(client).await?;
    let what = what.trim_start_matches('/');
    match &runs[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.run.to_string())),
        several => {
            let line = |view: &RunView| {
                format!("{} {}: {}", view.run.short(), words(view), short(&view.request, 60))
            };
            let listed: Vec<String> = several.iter().take(EXPLAINED).map(line).collect();
            Err(Failure::usage(format!("{} runs have not ended", several.len()))
                .why(format!("\n    {}", listed.join("\n    ")))
                .fix(format!("name the one, as in `stafette {what} {}`", several[0].run.short())))
        }
    }
}

async fn steer(
    context: &Context,
    run: Option<&str>,
    what: &str,
    body: &Value,
) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let named = match run {
        Some(run) => Some(run.to_owned()),
        None => the_only(&client, what).await?,
    };
    let view: RunView = client.post(&run_path(named.as_deref(), what), body).await?;
    match context.output.json {
        true => context.output.data(&view),
        false => context.output.say(format!("{}: {}", view.run.short(), words(&view))),
    }
    Ok(Exit::Ok)
}
