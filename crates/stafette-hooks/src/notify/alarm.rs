//! Alerts as notifications: the caller knows which alerts fire; this remembers what was reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stafette_core::Time;
use tokio::sync::watch;

/// State of an alert.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alert {
    pub name: String,
    /// Time when that began, or was noticed.
    pub at: Time,
    /// True while it fires.
    pub firing: bool,
    /// Title, as a sentence.
    pub title: String,
    /// Recommended action for people.
    pub text: String,
}

/// Source of the alerts.
#[derive(Clone)]
pub struct Alarms {
    /// Grows with each change; 0 until the state is known.
    pub rung: watch::Receiver<u64>,
    /// Returns the latest changes, the oldest first, and then the current state of each alert.
    pub look: Arc<dyn Fn() -> Vec<Alert> + Send + Sync>,
}

impl std::fmt::Debug for Alarms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarms").finish_non_exhaustive()
    }
}

impl Alarms {
    /// Waits for a change since the last look.
    pub(super) async fn changed(&mut self) {
        if self.rung.changed().await.is_err() {
            // The sender is gone, so that no more changes come.
            std::future::pending::<()>().await;
        }
    }
}

/// State of each alert as last reported.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Told(BTreeMap<String, (bool, Time)>);

impl Told {
    /// Returns true if the alert is news, and then remembers it as reported. A repeated or earlier
    /// state is no news.
    pub(super) fn is_news(&mut self, alert: &Alert) -> bool {
        let (firing, at) = self.0.get(&alert.name).copied().unwrap_or((false, Time(i64::MIN)));
        let news = alert.at > at && alert.firing != firing;
        if news {
            self.0.insert(alert.name.clone(), (alert.firing, alert.at));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(at: i64, firing: bool) -> Alert {
        let text = String::new();
        Alert { name: "HandoffSlow".into(), at: Time(at), firing, title: text.clone(), text }
    }

    fn news(told: &mut Told, alerts: &[Alert]) -> Vec<(i64, bool)> {
        let fresh = alerts.iter().filter(|alert| told.is_news(alert));
        fresh.map(|alert| (alert.at.0, alert.firing)).collect()
    }

    #[test]
    fn b_13_an_alert_is_told_when_it_fires_and_when_it_stops_and_not_again() {
        let mut told = Told::default();
        assert_eq!(news(&mut told, &[alert(1, false)]), [], "nothing fired yet");
        let fired = [alert(2, true), alert(3, true)];
        assert_eq!(news(&mut told, &fired), [(2, true)]);
        assert_eq!(news(&mut told, &fired), [], "told already");
        // It stopped, fired and stopped unnoticed.
        let all =
            [alert(2, true), alert(4, false), alert(5, true), alert(6, false), alert(7, false)];
        assert_eq!(news(&mut told, &all), [(4, false), (5, true), (6, false)]);
        assert_eq!(news(&mut told, &all), []);
    }

    #[test]
    fn b_13_a_restart_tells_only_what_changed_meanwhile() {
        let mut told = Told::default();
        news(&mut told, &[alert(2, true)]);
        let kept = serde_json::to_string(&told).expect("JSON");
        let restarted = || serde_json::from_str::<Told>(&kept).expect("as it was kept");
        // A killed daemon did not save that it fired: it notices that again, later.
        assert_eq!(news(&mut restarted(), &[alert(9, true), alert(9, true)]), []);
        // Or the alert has ended by then, and nobody saw it stop.
        assert_eq!(news(&mut restarted(), &[alert(9, false)]), [(9, false)]);
    }
}
