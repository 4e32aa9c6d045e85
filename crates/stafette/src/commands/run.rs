//! `run` and `resume`: gives the agents a request and follows it to its end.

mod generations;

use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_agents::profile::unseen;
use stafette_core::clean::Clean;
use stafette_core::team::council::Decision;
use stafette_core::team::order::Leftover;
use stafette_core::{Fields, Handoff, Outcome, Party, Usd, handoff};
use stafette_engine::{CouncilView, HandoffView, RunView};
use tokio::sync::Notify;

use super::{Context, run_path};
use crate::cli::{self, Template};
use crate::client::Client;
use crate::daemon::{self, Daemon};
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone, short};
use crate::project::{Project, is_repository, person};
use crate::trust;
use crate::window::{Signals, no_signals};

/// The time that a daemon inside has to end.
const ENDING: Duration = Duration::from_secs(30);

/// The longest request on standard input, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// The largest context file, in bytes.
const LARGEST_CONTEXT: u64 = 16 * 1024 * 1024;

/// The end of the task that a daemon inside lives in.
type Ended = Result<Result<(), Failure>, tokio::task::JoinError>;

pub(crate) async fn run(context: &Context, arguments: cli::Run) -> Result<Exit, Failure> {
    let Some(project) = prepared(context)? else { return Ok(Exit::Failed) };
    if !arguments.foreground {
        let client = daemon::reach(&project).await?;
        return start(context, &client, &arguments).await;
    }
    daemon::end_held(&project).await?;
    let client = Client::new(&project.socket()?);
    let ready = Arc::new(Notify::new());
    let told = ready.clone();
    let (inside, output) = (project.clone(), context.output);
    let daemon = Daemon { private: true, ..Daemon::default() };
    let mut server =
        tokio::spawn(async move { daemon.run(&inside, output, move || told.notify_one()).await });
    tokio::select! {
        () = ready.notified() => {}
        ended = &mut server => return Err(early_end(ended)),
    }
    let exit = tokio::select! {
        exit = start(context, &client, &arguments) => exit,
        ended = &mut server => return stopped(context, ended),
    };
    let ends = match &exit {
        Err(failure) if failure.code == Exit::NoDaemon => true,
        // It still answers while it closes its store.
        Err(_) => client.get::<Value>("/readyz").await.is_err(),
        Ok(_) => false,
    };
    if ends && let Ok(ended) = tokio::time::timeout(ENDING, &mut server).await {
        // It was asked something while it ended.
        return stopped(context, ended);
    }
    let _: Result<Value, Failure> = client.post("/v1/stop", &json!({})).await;
    let _ = server.await;
    exit
}

/// Returns the project. In a repository without a workflow the user is offered one, and in a
/// terminal also to trust the workflow that is there; `None` if they do not want it.
fn prepared(context: &Context) -> Result<Option<Project>, Failure> {
    let in_terminal = std::io::stdin().is_terminal();
    let here = context.project.clone().map_or_else(std::env::current_dir, Ok);
    let is_bare = context.find_project()?.is_none() && here.is_ok_and(|it| is_repository(&it));
    if is_bare && (in_terminal || context.yes) {
        context.output.say("There is no stafette.toml in this repository yet.");
        let pair =
            cli::Init { template: Template::Pair, agent: None, scripted: false, force: false };
        // Standard output belongs to the run.
        let shown = Context { output: Output { json: false }, ..context.clone() };
        if super::init::create(&shown, &pair)?.is_none() {
            return Ok(None);
        }
    }
    let project = context.project()?;
    // `--yes` confirms what the user has asked for, never what a repository brings along.
    if in_terminal && !context.yes && !context.output.json {
        let loaded = project.load()?;
        let look = cli::Trust { list: false };
        if !trust::is_trusted(&project, &loaded) && super::trust::run(context, &look)? != Exit::Ok {
            return Ok(None);
        }
    }
    Ok(Some(project))
}

/// The end of a run in the foreground by a signal, which the daemon inside receives too.
fn stopped(context: &Context, ended: Ended) -> Result<Exit, Failure> {
    if let Ok(Err(failure)) = ended {
        return Err(failure);
    }
    context.output.say("stopped; `stafette resume` continues the run");
    Ok(Exit::Interrupted)
}

fn early_end(ended: Ended) -> Failure {
    match ended {
        Ok(Err(failure)) => failure,
        _ => Failure::failed("The daemon ended before the run began")
            .fix("see its log; `stafette state` says where it is"),
    }
}

async fn start(context: &Context, client: &Client, arguments: &cli::Run) -> Result<Exit, Failure> {
    let budget = arguments.budget.as_deref().map(money).transpose()?;
    if budget == Some(Usd(0)) || arguments.tokens == Some(0) {
        return Err(Failure::usage("A budget of nothing lets no agent begin")
            .why("a turn begins while something of the budget is left")
            .fix("give an amount, such as `--budget 0.50usd`, or leave it out"));
    }
    let request = match arguments.request.as_deref() {
        Some("-") => typed()?,
        request => request.unwrap_or_default().to_owned(),
    };
    if request.trim().is_empty() && arguments.from_context.is_none() {
        return Err(Failure::usage("The request is empty")
            .fix("say what the agents should do: `stafette run \"Add JWT login\"`"));
    }
    let body = json!({
        "context": context_file(arguments)?,
        "continuous": continuous(arguments)?,
        "request": request,
        "inputs": pairs(&arguments.inputs)?,
        "budget": budget,
        "tokens": arguments.tokens,
        "by": person(),
    });
    super::continue_runs(context, client, None).await?;
    warn_of_unseen(context, budget.is_some() || arguments.tokens.is_some());
    let started: Value = client.post("/v1/runs", &body).await?;
    let run = started["run"].as_str().unwrap_or_default().to_owned();
    if arguments.detach {
        match context.output.json {
            true => context.output.data(&started),
            false => context.output.line(&run),
        }
        return Ok(Exit::Ok);
    }
    let seen = async {
        match arguments.continuous {
            true => generations::follow(context, client, run.clone(), arguments.wait).await,
            false => follow_one(context, client, &run, arguments.wait).await,
        }
    };
    // In the foreground the daemon inside receives it, and ends first.
    if arguments.foreground {
        return seen.await;
    }
    until_interrupted(context, &run, seen).await
}

/// Reads the request from standard input.
fn typed() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
    let unread = || Failure::usage("Cannot read the request from standard input");
    match read {
        Ok(length) if length as u64 > LONGEST => Err(unread()
            .why("it is more than 1 MiB")
            .fix("put what is long into files of the project, and name them in the request")),
        Ok(_) => Ok(text.trim_end().to_owned()),
        Err(error) => Err(unread()
            .because(&error)
            .fix("pipe a text into it, as in `stafette run - < request.md`")),
    }
}

/// Says which agents' cost the budget does not see; `is_set` if the person limited this run.
fn warn_of_unseen(context: &Context, is_set: bool) {
    let Ok(project) = context.project() else { return };
    let Ok(loaded) = project.load() else { return };
    let library = project.profiles();
    if let Some(unseen) = unseen(&loaded.workflow, is_set, |name| library.get(name)) {
        context.output.say(format!("note: {unseen}"));
    }
}

/// Shows a run until the person interrupts: the run continues without them.
async fn until_interrupted(
    context: &Context,
    run: &str,
    seen: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let mut signals = Signals::new().map_err(|error| no_signals(&error))?;
    tokio::select! {
        exit = seen => exit,
        () = signals.any() => {
            let short = run.get(run.len().saturating_sub(8)..).unwrap_or(run);
            context.output.say(format!(
                "detached, and the run continues: `stafette resume {short}` shows it again, \
                 `stafette cancel {short}` cancels it"
            ));
            Ok(Exit::Interrupted)
        }
    }
}

/// Reads the context file that the user named.
fn context_file(arguments: &cli::Run) -> Result<Option<Value>, Failure> {
    let Some(path) = &arguments.from_context else { return Ok(None) };
    let unreadable = |error: &dyn std::error::Error| {
        Failure::usage(format!("{} is not a context", path.display())).because(error).fix(
            "give a file like data/state/orchestrator-context.json; `stafette schema context` \
             describes it",
        )
    };
    let text =
        stafette_disk::read_text(path, LARGEST_CONTEXT).map_err(|error| unreadable(&error))?;
    serde_json::from_str(&text).map(Some).map_err(|error| unreadable(&error))
}

fn money(text: &str) -> Result<Usd, Failure> {
    Usd::parse(text).map_err(|_| {
        Failure::usage(format!("`{text}` is not an amount of money"))
            .fix("write it as 5usd or 0.30usd")
    })
}

/// The settings for further generations, if there are any.
fn continuous(arguments: &cli::Run) -> Result<Option<Value>, Failure> {
    if !arguments.continuous {
        return Ok(None);
    }
    Ok(Some(json!({
        "max_runs": arguments.max_runs,
        "max_cost": arguments.max_cost.as_deref().map(money).transpose()?,
        "check_in_every": arguments.check_in_every,
        "pause": arguments.pause,
    })))
}

pub(crate) async fn resume(context: &Context, arguments: cli::OneRun) -> Result<Exit, Failure> {
    let project: Project = context.project()?;
    let client = daemon::reach(&project).await?;
    let view: RunView = client.get(&run_path(arguments.run.as_deref(), "")).await?;
    if view.status == "paused" {
        let path = run_path(Some(&view.run.to_string()), "/unpause");
        let _: Value = client.post(&path, &json!({ "by": person() })).await?;
    }
    let continued = super::continue_runs(context, &client, Some(&view)).await?;
    let run = view.run.to_string();
    if let Some(stays) = continued.stopped.iter().find(|stopped| stopped.run == view.run) {
        return Err(Failure::new(Exit::NeedsPerson, format!("{} stays stopped", view.run.short()))
            .why(&stays.why)
            .fix("see `stafette why`, and resume it once that is corrected"));
    }
    until_interrupted(context, &run, follow_one(context, &client, &run, false)).await
}

/// `KEY=VALUE` pairs as inputs; a value that is JSON is taken as JSON.
pub(crate) fn pairs(pairs: &[String]) -> Result<Fields, Failure> {
    let mut fields = Fields::new();
    for pair in pairs {
        let named = pair.split_once('=').filter(|(key, _)| !key.trim().is_empty());
        let (key, value) = named.ok_or_else(|| {
            Failure::usage(format!("`{pair}` is not an input")).fix("write it as KEY=VALUE")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        fields.insert(key.to_owned(), value);
    }
    Ok(fields)
}

/// Follows a run after which no other begins by itself. If its council left the decision to the next
/// generation, a person has to begin that.
async fn follow_one(
    context: &Context,
    client: &Client,
    run: &str,
    stay: bool,
) -> Result<Exit, Failure> {
    let exit = follow(context, client, run, stay).await?;
    if exit != Exit::Ok {
        return Ok(exit);
    }
    let view: RunView = client.get(&run_path(Some(run), "")).await?;
    let is_open = |council: &CouncilView| council.decision == Some(Decision::Exhausted);
    let Some(council) = view.council.filter(is_open) else { return Ok(exit) };
    let lineage: Value = client.get(&run_path(Some(run), "/generations")).await?;
    if lineage.pointer("/lineage/handed_over/next").is_some_and(|next| !next.is_null()) {
        return Ok(exit);
    }
    let why = council.why.unwrap_or_default();
    context.output.say(format!(
        "the council did not agree: {why}; no next generation follows by itself: begin it with \
         `stafette run --from-context FILE`, with what `stafette context --json` prints"
    ));
    Ok(Exit::NeedsPerson)
}

/// Shows events until the run has ended or waits for a person.
async fn follow(
    context: &Context,
    client: &Client,
    run: &str,
    stay: bool,
) -> Result<Exit, Failure> {
    let mut lines = client.lines(&run_path(Some(run), "/events?follow=true")).await?;
    let mut settling: Option<(RunView, Exit)> = None;
    while let Some(event) = lines.next().await? {
        if let Some(text) = line(context, &event) {
            context.output.say(text);
        }
        let may_settle = ["run_finished", "handoff_admitted", "handoff_blocked", "handoff_closed"];
        if settling.is_none() && may_settle.iter().any(|name| event["event"] == *name) {
            let mut view: RunView = client.get(&run_path(Some(run), "")).await?;
            if view.collecting {
                view = client.get(&run_path(Some(run), "/settled")).await?;
            }
            settling = settled(&view, stay).map(|exit| (view, exit));
        }
        // All events that led to the end are shown before the end itself.
        if let Some((view, exit)) = &settling
            && event["seq"].as_u64() >= Some(view.seq)
        {
            return end(context, client, view, *exit).await;
        }
    }
    let view: RunView = client.get(&run_path(Some(run), "")).await?;
    let exit = settled(&view, stay).unwrap_or(Exit::Failed);
    end(context, client, &view, exit).await
}

fn settled(view: &RunView, stay: bool) -> Option<Exit> {
    match (view.status.as_str(), view.waiting_on.as_deref()) {
        ("succeeded", _) => Some(Exit::Ok),
        ("failed" | "cancelled", _) => Some(Exit::Failed),
        ("waiting", Some("human")) if !stay => Some(Exit::NeedsPerson),
        ("waiting", Some("budget")) if !stay => Some(Exit::Budget),
        _ => None,
    }
}

async fn end(
    context: &Context,
    client: &Client,
    view: &RunView,
    exit: Exit,
) -> Result<Exit, Failure> {
    let output = context.output;
    let is_empty = exit == Exit::Ok && is_skipped(client, view).await?;
    let exit = if is_empty { Exit::Failed } else { exit };
    if output.json {
        output.data(view);
        return Ok(exit);
    }
    if matches!(exit, Exit::NeedsPerson | Exit::Budget) {
        let questions: Vec<Value> = client.get("/v1/inbox").await?;
        let ours = questions.iter().filter(|q| q["run"] == json!(view.run));
        for question in ours {
            super::inbox::show(output, question);
        }
    }
    if let Some(phases) = &view.phases {
        super::phases::show(output, phases);
    }
    let tone = if exit == Exit::Ok { Tone::Good } else { Tone::Yours };
    let why = view.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let rest = format!(
        " {}{why} — {}, {}",
        view.run.short(),
        crate::output::count(view.tally.handoffs as usize, "handoff"),
        super::cost::spent(view.purse.spent),
    );
    output.say(output.paint(tone, &view.status) + rest);
    if view.is_over() {
        result(context, client, view).await?;
    }
    if is_empty {
        output.say("  Nothing was done: a person skipped all of its work");
    }
    output.line(view.run.to_string());
    Ok(exit)
}

/// True if a person skipped every handoff to an agent, so that the run has succeeded without work.
async fn is_skipped(client: &Client, view: &RunView) -> Result<bool, Failure> {
    if super::status::in_part(view).is_none() {
        return Ok(false);
    }
    let handoffs = handoffs(client, view).await?;
    let mut of_agents = handoffs.iter().filter(|one| matches!(one.offer.to, Party::Agent(_)));
    Ok(of_agents.all(|one| {
        let answer = one.answer();
        answer.is_some_and(|said| said.by == Party::Human && said.outcome == Outcome::Partial)
    }))
}

/// The handoffs of a run that were admitted.
async fn handoffs(client: &Client, view: &RunView) -> Result<Vec<Handoff>, Failure> {
    let path = run_path(Some(&view.run.to_string()), "/handoffs");
    let rows: Vec<Value> = client.get(&path).await?;
    let admitted = |row: &Value| match serde_json::from_value(row["handoff"].clone()) {
        Ok(HandoffView::Admitted(handoff)) => Some(*handoff),
        _ => None,
    };
    Ok(rows.iter().filter_map(admitted).collect())
}

/// Says what a run that has ended brought, and what the user can do with it.
async fn result(context: &Context, client: &Client, view: &RunView) -> Result<(), Failure> {
    let output = context.output;
    let handoffs = handoffs(client, view).await?;
    for handoff in handoff::results(&handoffs) {
        let said = handoff.answer().map(|answer| answer.summary).unwrap_or_default();
        if !said.is_empty() {
            output.say(format!("  {}: {}", handoff.offer.to, short(&said, 200)));
        }
    }
    for line in super::changes::of_run(client, view.run).await? {
        output.say(format!("  {line}"));
    }
    if let Some(left) = &view.left {
        super::changes::left(left).iter().for_each(|line| output.say(format!("  {line}")));
    }
    // An older daemon does not list them.
    let path = run_path(Some(&view.run.to_string()), "/messages");
    let messages: Vec<Value> = client.get(&path).await.unwrap_or_default();
    for unread in messages.iter().filter(|message| message["status"] == "unread") {
        let text = |name: &str| unread[name].as_str().unwrap_or_default();
        output.say(format!(
            "  {} never read {}: {}",
            text("to"),
            text("id"),
            short(text("text"), 80)
        ));
    }
    if view.collecting {
        output.say("  What its agents left is still being collected: see `stafette changes`");
    }
    Ok(())
}

/// One event for people, if it is worth a line.
pub(crate) fn line(context: &Context, event: &Value) -> Option<Clean> {
    let output = context.output;
    // Sent again once it is public: of these, only votes are worth a line.
    if event["again"] == true && event["event"] != "council_heard" {
        return None;
    }
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match text("/event") {
        "run_created" => step("●", short(text("/request"), 100)),
        "run_adopted" => step("↻", "taken over"),
        "handoff_admitted" => {
            let question = text("/offer/question/details");
            let route =
                format!("{:>4} {} → {}", text("/id"), text("/offer/from"), text("/offer/to"));
            match question.is_empty() {
                true => step("→", format!("{route}  {}", reason(event))),
                false => step(output.paint(Tone::Yours, "?"), format!("{route}  {question}")),
            }
        }
        "handoff_refused" => step(
            output.paint(Tone::Bad, "✗"),
            format!(
                "{:>4} {} → {} refused: {}",
                text("/id"),
                text("/offer/from"),
                text("/offer/to"),
                refusal(event)
            ),
        ),
        "phase_begun" => step("▸", format!("{} phase", text("/phase"))),
        "phase_ended" => step("◂", format!("{}: {}", text("/decision"), text("/why"))),
        "handoff_resumed" => {
            // An invalid answer; a handoff that was refused has its own event.
            let said = text("/refusals/0/failure");
            let told = event.pointer("/refusals/0/recommendations/0").is_some();
            (!said.is_empty() && !told)
                .then(|| step(output.paint(Tone::Bad, "✗"), format!("given back: {said}")))
                .flatten()
        }
        "lease_renewed" if !text("/note").is_empty() => step("…", short(text("/note"), 100)),
        "turn_failed" => step(output.paint(Tone::Bad, "!"), text("/failure/message").to_owned()),
        "retry_scheduled" => step("↻", format!("attempt {} follows", event["attempt"])),
        "budget_reached" => step(output.paint(Tone::Yours, "$"), text("/why").to_owned()),
        "change_proposed" => {
            let word = if event["revision"] == 1 { "proposed" } else { "revised" };
            let reason = short(text("/reason"), 80);
            step("±", format!("{:>4} {word}: {reason}", text("/change")))
        }
        "change_settled" if event["unchanged"] == true => {
            let (id, status) = (text("/change"), text("/status"));
            step("±", format!("{id:>4} stays {status}: {}", short(text("/note"), 200)))
        }
        "order_done" if event["left"].is_object() => {
            let left: Leftover = serde_json::from_value(event["left"].clone()).ok()?;
            step(output.paint(Tone::Bad, "!"), left.told())
        }
        "change_settled" => step("±", format!("{:>4} {}", text("/change"), text("/status"))),
        "council_opened" => step("◇", format!("the council meets: {}", short(text("/topic"), 80))),
        "council_heard" if event["sealed"] == true => {
            step("◇", format!("{} has voted", text("/member")))
        }
        "council_heard" => {
            let signal = match text("/vote/signal") {
                "" => "says nothing",
                signal => signal,
            };
            let said = [text("/vote/reason"), text("/said")];
            let said = said.into_iter().find(|said| !said.is_empty()).unwrap_or_default();
            step("◇", format!("{}: {signal}  {}", text("/member"), short(said, 80)))
        }
        "council_concluded" => step("◆", text("/verdict/why").to_owned()),
        "council_reopened" => step("◇", "the council speaks on"),
        "note_left" => step("✎", short(text("/text"), 100)),
        "alert_raised" => {
            let said = format!("{}{}: {}", text("/code"), printed(event), text("/message"));
            step(output.paint(Tone::Bad, "!"), said)
        }
        "frame_ignored" => step("…", format!("printed frame ignored: {}", text("/reason"))),
        _ => None,
    }
}

/// The mark of what was read from plain output, which anything printed can imitate.
pub(super) fn printed(event: &Value) -> &'static str {
    if event["printed"] == true { " (printed)" } else { "" }
}

/// One line: an agent's words must not look like further lines of ours.
fn step(mark: impl Into<Clean>, said: impl Into<Clean>) -> Option<Clean> {
    Some((mark.into() + " " + said).on_one_line())
}

fn reason(event: &Value) -> String {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let summary = [text("/offer/summary"), text("/offer/detail")];
    let said = summary.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    match said.is_empty() {
        true => text("/offer/reason").to_owned(),
        false => format!("{}: {}", text("/offer/reason"), short(said, 80)),
    }
}

fn refusal(event: &Value) -> String {
    serde_json::from_value::<stafette_core::run::propose::Refusal>(event["refusal"].clone())
        .map_or_else(|_| "refused".to_owned(), |refusal| refusal.to_string())
}
