//! The team's own program: kept running, and replaced when the team has changed it.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use stafette_agents::end_left_behind;
use stafette_core::change::{ChangeId, ChangeRules};
use stafette_core::command::environment;
use stafette_core::redact::Redactor;
use stafette_core::team::order::WorkKey;
use stafette_core::workflow::own::Own;
use stafette_workspace::{Changes, Renewal, RenewalError, Renewals, Stage};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::engine::Settings;
use crate::{Engine, crash};

/// The variable that the program and all its descendants carry: it names the project.
const MARK: &str = "STAFETTE_OWN_PROGRAM_OF";

/// The time a program has to exit after it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The size of the end of the program's output that is reported, in bytes.
const LAST_WORDS: usize = 2000;

/// The most of a log that is read for it, in bytes.
const MOST_READ: u64 = 1 << 20;

/// The running program. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManagedProgram {
    running: Arc<Mutex<Option<Child>>>,
    /// Allows one start or renewal at a time.
    renewing: Arc<Mutex<()>>,
}

impl ManagedProgram {
    /// Starts it. Returns the reason as an error if it does not stay up.
    async fn start(&self, settings: &Settings, own: &Own) -> Result<(), String> {
        let Some((program, arguments)) = own.start.split_first() else { return Ok(()) };
        let project = &settings.project;
        let home = settings.state.join("self");
        let log = home.join("program.log");
        let failed = |error: io::Error| format!("`{program}` does not start: {error}");
        stafette_disk::folder(&home).map_err(failed)?;
        let mut options = stafette_disk::private();
        let output = options.create(true).append(true).open(&log).map_err(failed)?;
        let before = output.metadata().map_err(failed)?.len();
        let path = Path::new(program);
        let named = path.components().count() == 1;
        let program_path = if named { path.to_owned() } else { project.join(path) };
        let mut command = Command::new(program_path);
        let is_named = |name: &str| own.env.iter().any(|it| it == name);
        let seen = environment::seen(std::env::vars_os(), is_named);
        command.args(arguments).current_dir(project).stdin(Stdio::null());
        command.env_clear().envs(seen).env(MARK, project);
        command.stdout(output.try_clone().map_err(failed)?).stderr(output);
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        crash::point();
        note(&home, &child).map_err(failed)?;
        crash::point();
        let ended: Option<io::Result<ExitStatus>> =
            tokio::time::timeout(own.settle.into(), child.wait()).await.ok();
        if let Some(ended) = ended {
            let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            let said = last_words(&log, before, &settings.redactor);
            return Err(format!("`{program}` ended as soon as it was started ({status}){said}"));
        }
        *self.running.lock().await = Some(child);
        crash::point();
        Ok(())
    }

    /// Ends it and every process that it has started.
    pub(crate) async fn stop(&self) {
        let Some(mut child) = self.running.lock().await.take() else { return };
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(group) = group else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait().await;
        crash::point();
    }
}

/// Writes down the process id, for people who look for it.
fn note(home: &Path, child: &Child) -> io::Result<()> {
    let Some(pid) = child.id() else { return Ok(()) };
    stafette_disk::write(&home.join("program.pid"), pid.to_string())
}

/// Returns the program's output after the first `before` bytes of its log, shortened to a useful
/// size, without its secrets.
fn last_words(log: &Path, before: u64, redactor: &Redactor) -> String {
    let read = || {
        let mut log = fs::File::open(log)?;
        // A secret that begins before is cut off with what is shown.
        let begin = log.metadata()?.len().saturating_sub(MOST_READ).max(before);
        log.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        log.take(MOST_READ).read_to_end(&mut text)?;
        io::Result::Ok(text)
    };
    let text = read().unwrap_or_default();
    let text = redactor.bytes(&text);
    let start = text.len().saturating_sub(LAST_WORDS);
    match String::from_utf8_lossy(&text[start..]).trim() {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

impl Engine {
    /// Starts the team's own program. If its renewal was interrupted, the old version is restored
    /// first.
    ///
    /// # Errors
    /// The reason why it does not run.
    pub async fn start_own(&self, own: &Own, rules: &ChangeRules) -> Result<(), String> {
        let program = self.shared().own.clone();
        let _one = program.renewing.lock().await;
        let project = self.settings().project.clone();
        // Processes that a killed daemon has left running, also when it had no time to write them
        // down.
        end_left_behind(&format!("{MARK}={}", project.display())).await;
        let rules = rules.clone();
        let back = self
            .with_renewals(async move |renewals, changes| renewals.recover(&changes, &rules).await);
        match back.await {
            Ok(None) => {}
            Ok(Some(change)) => tracing::warn!(%change, "its renewal was cut off; taken back"),
            Err(error) => return Err(error.to_string()),
        }
        program.start(self.settings(), own).await
    }

    /// True if the team's own program runs on this change.
    pub(crate) async fn runs_on(&self, change: ChangeId) -> bool {
        let runs =
            self.with_renewals(async move |renewals, changes| renewals.runs_on(change, &changes));
        runs.await.unwrap_or(false)
    }

    /// Replaces the program by one with the code of a change, and restores the old one if that
    /// fails.
    pub(crate) async fn replace_program(
        &self,
        change: ChangeId,
        order: Option<WorkKey>,
        own: Own,
        rules: ChangeRules,
    ) -> Result<Renewal, RenewalError> {
        let program = self.shared().own.clone();
        let _one = program.renewing.lock().await;
        let settings = self.settings().clone();
        let running = program.clone();
        self.with_renewals(async move |renewals, changes| {
            let changes = changes.ordered(order.into_iter().collect());
            let replace = async || {
                running.stop().await;
                running.start(&settings, &own).await
            };
            let renewed = renewals.renew(&changes, change, (&own, &rules), replace).await;
            let back = !matches!(&renewed, Ok(renewal) if renewal.stage == Stage::Done);
            let down = running.running.lock().await.is_none();
            if back
                && down
                && let Err(why) = running.start(&settings, &own).await
            {
                tracing::error!(%why, "the old program does not start any more");
            }
            renewed
        })
        .await
    }

    /// Runs on a thread of its own and completes even if the caller goes away.
    async fn with_renewals<T, F>(
        &self,
        work: impl FnOnce(Renewals, Changes) -> F + Send + 'static,
    ) -> Result<T, RenewalError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RenewalError>>,
    {
        let Settings { project, state, .. } = self.settings().clone();
        let done = self.changes().with(async move |changes| {
            let renewals = Renewals::open(&project, &state);
            Ok(work(renewals, changes).await)
        });
        done.await?
    }
}

/// The alert for the run of a change: its code and message.
pub(crate) fn alert(renewal: &Renewal) -> (String, String) {
    match renewal.stage {
        Stage::Done => {
            let message = format!("{} is in, and the team runs on it", renewal.change);
            ("RESTARTED_WITH_NEW_CODE".to_owned(), message)
        }
        stage => {
            let at = serde_json::to_value(stage).unwrap_or_default();
            let at = at.as_str().unwrap_or_default();
            let message = format!("{} was taken back at {at}: {}", renewal.change, renewal.why);
            ("NEW_CODE_ROLLED_BACK".to_owned(), message)
        }
    }
}
