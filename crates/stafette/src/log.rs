//! The daemon's own log: a line for each thing worth knowing, on standard error.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stafette_core::Time;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Writes what is logged to standard error from now on; a second call changes nothing.
pub(crate) fn start() {
    let _ = tracing::subscriber::set_global_default(Lines { next: AtomicU64::new(1) });
}

/// The smallest subscriber that is of use here: no spans, no filters but the level.
struct Lines {
    next: AtomicU64,
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        let mut line = Line { text: format!("{at} {}", event.metadata().level()) };
        event.record(&mut line);
        // Nowhere to complain to when the log itself cannot be written.
        let _ = writeln!(std::io::stderr().lock(), "{}", line.text);
    }
}

struct Line {
    text: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.text, " {value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}
