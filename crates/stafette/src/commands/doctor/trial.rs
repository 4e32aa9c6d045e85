//! `doctor --try`: each agent at work in each of its modes, with a model on this machine behind it
//! that says what a script says.
//!
//! Each trial has a home of its own. Nothing of the user's home, keys and settings is read or
//! changed, and at the end nothing is left.

mod case;
mod findings;
mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stafette_agents::profile::{Library, Profile, Recommendation, on_path};
use stafette_core::workflow::{PermissionLevel, Sandbox};
use stafette_engine::clock;
use stafette_fake_model::{ModelServer, Outcome as Answered};

use super::version;
use crate::cli::{self, TrialCase, TrialPermissions, TrialRunner};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, short};
use crate::window::Signals;
use findings::Findings;
use world::World;

/// The time between two looks at a run.
const LOOK: Duration = Duration::from_millis(250);

/// What to do where the machine gives too little.
const AGAIN: &str = "end programs that are not needed and try again";

/// The number of characters of a remark in the table.
const REMARK: usize = 100;

/// One agent in one mode.
struct Trial<'a> {
    profile: &'a Profile,
    /// The file of a profile that the user has written.
    file: Option<&'a Path>,
    runner: TrialRunner,
    case: TrialCase,
    settings: Recommendation,
    version: String,
}

/// The outcome of a trial; an error when it could not be made.
type Outcome = Result<Findings, Failure>;

pub(super) async fn run(context: &Context, arguments: cli::Doctor) -> Result<Exit, Failure> {
    let output = context.output;
    // Not the project's profiles: they may name any command, and nobody has trusted them here.
    let library = Library::of(None);
    let profiles = chosen(&library, &arguments.only)?;
    let sandbox = super::try_sandbox().map(|report| report.gaps());
    let is_enforced = sandbox.as_ref().is_ok_and(|gaps| gaps.is_empty());
    let (mut trials, mut missing) = (Vec::new(), Vec::new());
    for profile in profiles {
        let settings = match arguments.permissions {
            None => profile.recommendation(is_enforced),
            Some(level) => level.settings(),
        };
        for (runner, program) in modes(profile, &arguments.runner) {
            if on_path(&program).is_none() {
                missing.push((profile, runner, program));
                continue;
            }
            let version = version::of(profile).await.unwrap_or_default();
            let cases = arguments.case.iter();
            let file = library.file(&profile.name);
            trials.extend(cases.map(|case| Trial {
                profile,
                file,
                runner,
                case: *case,
                settings,
                version: version.clone(),
            }));
        }
    }
    let mut signals = Signals::new()
        .map_err(|error| Failure::failed("Cannot receive signals").because(&error).fix(AGAIN))?;
    let (total, mut tried, mut interrupted) = (trials.len(), Vec::new(), false);
    for trial in trials {
        output.say(format!("{}/{total} {}", tried.len() + 1, trial.name()));
        let limit = Duration::from_secs(arguments.limit);
        match trial.make(limit, arguments.keep.as_deref(), &mut signals).await {
            Ok(None) => {
                interrupted = true;
                break;
            }
            Ok(Some(findings)) => tried.push((trial, Ok(findings))),
            Err(failure) => tried.push((trial, Err(failure))),
        }
        if let Some((trial, outcome)) = tried.last() {
            let problem = trial.problem(outcome);
            output.say(format!("    {}", problem.as_deref().unwrap_or("works")));
        }
    }
    let good = tried.iter().all(|(trial, outcome)| trial.problem(outcome).is_none());
    match output.json {
        true => {
            let trials: Vec<Value> =
                tried.iter().map(|(trial, outcome)| trial.json(outcome)).collect();
            let missing: Vec<Value> = missing
                .iter()
                .map(|(profile, runner, program)| {
                    json!({
                        "agent": profile.name, "runner": runner.name(), "program": program,
                        "install": profile.install(runner.runner()),
                    })
                })
                .collect();
            let ok = good && !interrupted;
            output.data(&json!({ "ok": ok, "trials": trials, "not_installed": missing }));
        }
        false => {
            match total {
                0 => output.line("None of the known agents is installed."),
                _ => {
                    table(context, &tried);
                    // Only there does an agent run commands without a question.
                    if let (None, false) = (arguments.permissions, is_enforced) {
                        let why = sandbox.unwrap_or_else(|why| why);
                        output.line(format!("No agent may do everything here: {why}"));
                    }
                }
            }
            for (profile, runner, program) in &missing {
                let install = profile.install(runner.runner());
                let (name, mode) = (&profile.name, runner.name());
                output.line(format!("{name} {mode}: `{program}` is not installed: {install}"));
            }
        }
    }
    Ok(match (interrupted, good) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Failed,
    })
}

/// The profiles that can be tried: of these names, if there are any.
fn chosen<'a>(library: &'a Library, only: &[String]) -> Result<Vec<&'a Profile>, Failure> {
    let can = |profile: &&Profile| !profile.trial.env.is_empty() || !profile.trial.files.is_empty();
    let known: Vec<&Profile> = library.all().filter(can).collect();
    let names: BTreeSet<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name.as_str())) {
        let names: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
        return Err(Failure::usage(format!("`{unknown}` cannot be tried"))
            .why("no profile with a [trial] has this name")
            .fix(format!("choose from {}", names.join(", "))));
    }
    Ok(known.into_iter().filter(|p| only.is_empty() || only.contains(&p.name)).collect())
}

/// The modes of a profile, each with its program: of these, if there are any.
fn modes(profile: &Profile, only: &[TrialRunner]) -> impl Iterator<Item = (TrialRunner, String)> {
    let chosen = TrialRunner::ALL.into_iter().filter(|r| only.is_empty() || only.contains(r));
    chosen.filter_map(|runner| Some((runner, profile.command(runner.runner())?.first()?.clone())))
}

impl TrialPermissions {
    /// The settings of an agent with these permissions: without a question it is kept in.
    fn settings(self) -> Recommendation {
        let (permissions, sandbox) = match self {
            TrialPermissions::Ask => (PermissionLevel::Ask, Sandbox::Off),
            TrialPermissions::Edits => (PermissionLevel::Edits, Sandbox::Off),
            TrialPermissions::All => (PermissionLevel::All, Sandbox::Auto),
        };
        Recommendation { sandbox, permissions }
    }
}

impl Trial<'_> {
    fn name(&self) -> String {
        format!("{} {}: {}", self.profile.name, self.runner.name(), self.case.name())
    }

    /// Makes it; `None` if a person does not want to wait for the end.
    async fn make(
        &self,
        limit: Duration,
        keep: Option<&Path>,
        signals: &mut Signals,
    ) -> Result<Option<Findings>, Failure> {
        let failed = |error: std::io::Error| {
            Failure::failed("Cannot make a home for the trial")
                .because(&error)
                .fix("free some space in /var/tmp, or keep the homes elsewhere with --keep")
        };
        let model = ModelServer::start(self.case.script(self.profile, self.may_run())).map_err(
            |error| Failure::failed("Cannot start the model").because(&error).fix(AGAIN),
        )?;
        let folder = tempfile::tempdir_in(temporary()).map_err(failed)?;
        let home = match keep {
            None => folder.path().to_owned(),
            Some(keep) => {
                let name = [self.profile.name.as_str(), self.runner.name(), self.case.name()];
                let name = name.join("-");
                let home = keep.join(name);
                // What an earlier trial has left there.
                let _ = std::fs::remove_dir_all(&home);
                std::fs::create_dir_all(&home).map_err(failed)?;
                home
            }
        };
        let home = home.canonicalize().map_err(failed)?;
        let workflow = self.case.workflow(self.profile, self.runner, self.settings);
        if let Some(file) = self.file {
            let profiles = home.join(".config/stafette/profiles");
            let name = format!("{}.toml", self.profile.name);
            std::fs::create_dir_all(&profiles).map_err(failed)?;
            std::fs::copy(file, profiles.join(name)).map_err(failed)?;
        }
        let mut world = World::new(&home, self.profile, &workflow, &model.url()).await?;
        let findings = tokio::select! {
            findings = self.drive(&mut world, &model, limit) => Some(findings),
            () = signals.any() => None,
        };
        world.keep(&model.exchanges());
        world.close().await;
        findings.transpose()
    }

    /// Follows the run to its end, and answers what it asks with yes, as a person would.
    async fn drive(
        &self,
        world: &mut World,
        model: &ModelServer,
        limit: Duration,
    ) -> Result<Findings, Failure> {
        world.start().await?;
        let since = Instant::now();
        let mut findings = Findings::default();
        let mut answered = BTreeSet::new();
        let mut stuck = false;
        loop {
            findings.time = since.elapsed();
            let exchanges = model.exchanges();
            findings.read(&exchanges, since.elapsed());
            for question in world.json(&["inbox"]).await.as_array().into_iter().flatten() {
                let id = format!("{}:{}", word(question, "/run"), word(question, "/id"));
                if !answered.insert(id.clone()) {
                    continue;
                }
                let asked = word(question, "/handoff/offer/question/details");
                if word(question, "/handoff/offer/question/reason") != "permission" {
                    findings.failures_asked.push(asked.clone());
                    // A person would not say yes to the same failure for ever.
                    stuck |= findings.asked.contains(&asked);
                }
                findings.asked.push(asked);
                if !self.case.is_over(&findings) {
                    let yes = word(question, "/handoff/offer/question/options/0");
                    let yes = if yes.is_empty() { "yes" } else { yes.as_str() };
                    // One that was settled meanwhile needs no answer.
                    let _ = world.stafette(&["answer", &id, yes]).await;
                }
            }
            findings.read_run(&world.json(&["status"]).await[0]);
            findings.read_events(&world.events().await);
            // Its first prompt is the one that is never answered.
            let stalls = exchanges.iter().any(|exchange| exchange.outcome == Answered::Rule(0));
            if self.case == TrialCase::Kill && findings.killed.is_none() && stalls {
                findings.killed = world.kill_agent().then(clock::now);
            }
            let over = ["succeeded", "failed", "cancelled"].contains(&findings.status.as_str());
            if over || stuck || self.case.is_over(&findings) || since.elapsed() > limit {
                findings.read(&model.exchanges(), since.elapsed());
                return Ok(findings);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What is not as it has to be.
    fn problem(&self, outcome: &Outcome) -> Option<String> {
        match outcome {
            Ok(findings) => {
                // A model without tools does not hear what became of a command.
                let hears = self.may_run() && !self.profile.trial.is_toolless;
                self.case.missing(findings, hears)
            }
            Err(failure) => Some(format!("{}: {}", failure.what, failure.why)),
        }
    }

    /// True if it may run commands without a question.
    fn may_run(&self) -> bool {
        let denied = &self.profile.permissions.all.denies;
        let is_denied =
            self.runner == TrialRunner::Exec && denied.iter().any(|it| it == "commands");
        self.settings.permissions == PermissionLevel::All && !is_denied
    }

    fn json(&self, outcome: &Outcome) -> Value {
        let mut line = match outcome {
            Ok(findings) => findings.json(),
            Err(_) => json!({}),
        };
        let problem = self.problem(outcome);
        line["agent"] = self.profile.name.as_str().into();
        line["runner"] = self.runner.name().into();
        line["case"] = self.case.name().into();
        line["sandbox"] = json!(self.settings.sandbox);
        line["permissions"] = json!(self.settings.permissions);
        line["version"] = self.version.as_str().into();
        line["proven"] = self.profile.detect.proven.as_str().into();
        line["ok"] = problem.is_none().into();
        line["problem"] = problem.into();
        line
    }

    fn row(&self, context: &Context, outcome: &Outcome) -> Vec<String> {
        let problem = self.problem(outcome);
        let good = problem.is_none();
        let mark = context
            .output
            .paint(if good { Tone::Good } else { Tone::Bad }, if good { "✓" } else { "✗" });
        let mut row = vec![
            mark.to_string(),
            self.profile.name.clone(),
            self.version.clone(),
            self.runner.name().to_owned(),
            self.case.name().to_owned(),
        ];
        let mut remarks: Vec<String> = problem.into_iter().collect();
        match outcome {
            Err(_) => row.extend(vec![String::new(); 6]),
            Ok(findings) => {
                let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f32());
                let tokens = findings.tokens().map(|tokens| tokens.to_string());
                row.extend([
                    if findings.ready { seconds(findings.ready_after) } else { "no".to_owned() },
                    findings.asked.len().to_string(),
                    if findings.handed_over { "yes" } else { "no" }.to_owned(),
                    tokens.unwrap_or_else(|| "unknown".to_owned()),
                    findings.spent.cost(),
                    seconds(findings.time),
                ]);
                remarks.extend(findings.remarks());
            }
        }
        row.push(short(&remarks.join("; "), REMARK));
        row
    }
}

const HEAD: [&str; 12] = [
    "", "agent", "version", "mode", "case", "ready", "asks", "handoff", "tokens", "cost", "time",
    "remarks",
];

fn table(context: &Context, tried: &[(Trial<'_>, Outcome)]) {
    let rows = tried.iter().map(|(trial, outcome)| trial.row(context, outcome));
    context.output.table(&HEAD, rows.collect());
    let good = tried.iter().filter(|(trial, outcome)| trial.problem(outcome).is_none());
    let alone = |outcome: &Outcome| outcome.as_ref().is_ok_and(|v| v.asked.is_empty());
    let quiet = good.clone().filter(|(_, outcome)| alone(outcome)).count();
    let (all, good) = (tried.len(), good.count());
    context.output.line(format!("{good} of {all} work, {quiet} without a question"));
}

/// The folder for homes. Codex installs no helpers for its sandbox in one below `/tmp`.
fn temporary() -> PathBuf {
    let place = PathBuf::from("/var/tmp");
    if place.is_dir() { place } else { std::env::temp_dir() }
}

/// The text at a place of a document; empty if there is none.
fn word(document: &Value, place: &str) -> String {
    document.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}
