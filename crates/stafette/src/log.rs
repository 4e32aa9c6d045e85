//! The daemon's own log: a line for each notable event, on standard error. When that is the
//! daemon's file, it is rotated before it gets too large, and writing continues in a new one.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::fstat;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use stafette_core::Time;
use stafette_core::clean::Clean;
use stafette_core::redact::Redactor;
use stafette_telemetry::rotation::Rotation;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// The maximum size of the log, and the number of older ones that are kept.
const ROTATION: Rotation = Rotation { bytes: 8 << 20, files: 3 };

/// Writes log lines to standard error from now on; a second call changes nothing. `path` is the log
/// of a daemon in the background.
pub(crate) fn start(path: &Path, redactor: Redactor) {
    let (next, file) = (AtomicU64::new(1), LogFile::of(path));
    let _ = tracing::subscriber::set_global_default(Lines { next, file, redactor });
}

/// The file behind standard error, when that is the daemon's.
struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    /// Lets one thread at a time make room.
    turn: Mutex<()>,
}

impl LogFile {
    fn of(path: &Path) -> Option<Self> {
        let limit = std::env::var("STAFETTE_LOG_MAX_BYTES").ok().and_then(|text| text.parse().ok());
        let rotation = Rotation { bytes: limit.unwrap_or(ROTATION.bytes), ..ROTATION };
        let ours = is_file(std::io::stderr(), path);
        ours.then(|| LogFile { path: path.to_owned(), rotation, turn: Mutex::default() })
    }

    /// Rotates the file when it has no room for this many bytes more.
    fn make_room(&self, more: usize) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Others write to it as well: only the system knows its size.
        let held =
            fstat(std::io::stderr()).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        if !self.rotation.is_due(held, more as u64) {
            return;
        }
        let to_both = is_file(std::io::stdout(), &self.path);
        // A file that cannot be rotated is written on.
        let Ok(file) = self.rotation.begin_anew(&self.path) else { return };
        let _ = dup2_stderr(&file);
        if to_both {
            let _ = dup2_stdout(&file);
        }
    }
}

/// True if a stream goes to a file.
fn is_file(stream: impl AsFd, path: &Path) -> bool {
    let (Ok(stream), Ok(file)) = (fstat(stream), std::fs::metadata(path)) else { return false };
    (stream.st_dev, stream.st_ino) == (file.dev(), file.ino())
}

/// The smallest subscriber that is useful here: no spans, no filters but the level.
struct Lines {
    next: AtomicU64,
    file: Option<LogFile>,
    redactor: Redactor,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let wanted = match std::env::var_os("STAFETTE_DEBUG") {
            Some(_) => Level::DEBUG,
            None => Level::INFO,
        };
        *metadata.level() <= wanted && metadata.target().starts_with("stafette")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let at = Time::of(SystemTime::now());
        let text = format!("{at} {}", event.metadata().level());
        let mut line = Line { text, redactor: &self.redactor };
        event.record(&mut line);
        // One event is one line, whatever an agent or a server said in it.
        let line = Clean::from(self.redactor.text(&line.text).as_ref()).on_one_line();
        let line = format!("{line}\n");
        if let Some(file) = &self.file {
            file.make_room(line.len());
        }
        // There is no place to report that the log itself cannot be written.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

struct Line<'r> {
    text: String,
    redactor: &'r Redactor,
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Before line ends are escaped: secrets are recognised by the line that they stand in.
        self.record_debug(field, &self.redactor.text(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.text, " {value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn b_17_a_secret_on_a_line_of_a_field_is_not_logged() {
        struct Catches(Arc<Mutex<String>>);
        impl Subscriber for Catches {
            fn enabled(&self, _: &Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
                span::Id::from_u64(1)
            }
            fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
            fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
            fn enter(&self, _: &span::Id) {}
            fn exit(&self, _: &span::Id) {}
            fn event(&self, event: &Event<'_>) {
                let redactor = Redactor::new();
                let mut line = Line { text: String::new(), redactor: &redactor };
                event.record(&mut line);
                *self.0.lock().expect("whole") = line.text;
            }
        }
        let caught = Arc::new(Mutex::default());
        let why = "refused\npassword=Zx1Qw2Er3Ty4Ui5\nDD_API_KEY=Qw2Er3Ty4Ui5Op6\n";
        tracing::subscriber::with_default(Catches(caught.clone()), || {
            tracing::warn!(on = "before_run", why, "a hook broke");
        });
        let text = caught.lock().expect("whole").clone();
        assert!(text.contains("[redacted:assignment]"), "{text}");
        assert!(!text.contains("Ty4Ui5"), "{text}");
    }
}
