//! Alerts as news: somebody else knows which fire; here is remembered what people were told.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stafette_core::Time;
use tokio::sync::watch;

/// An alert that fires, or does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alert {
    /// Which one.
    pub name: String,
    /// When that began, or was seen to be so.
    pub at: Time,
    /// Whether it fires.
    pub firing: bool,
    /// In a sentence.
    pub title: String,
    /// What to do about it.
    pub text: String,
}

/// Where it is known which alerts fire.
#[derive(Clone)]
pub struct Alarms {
    /// Grows when there is something new; 0 for as long as it is not known how they stand.
    pub rung: watch::Receiver<u64>,
    /// What began and stopped lately, the oldest first, and then how each alert stands.
    pub look: Arc<dyn Fn() -> Vec<Alert> + Send + Sync>,
}

impl std::fmt::Debug for Alarms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarms").finish_non_exhaustive()
    }
}

impl Alarms {
    /// Waits until there is more than was looked at.
    pub(super) async fn changed(&mut self) {
        if self.rung.changed().await.is_err() {
            // Nobody watches any more, so nothing rings.
            std::future::pending::<()>().await;
        }
    }
}

/// What people were told last of each alert.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Told(BTreeMap<String, (bool, Time)>);

impl Told {
    /// Whether that is news; then it is told from now on. What happens again while the same is
    /// told, or was seen before, is none.
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
        // Nobody looked while it stopped, fired and stopped.
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
        // A daemon that was killed did not keep that it fired: it finds so again, later.
        assert_eq!(news(&mut restarted(), &[alert(9, true), alert(9, true)]), []);
        // Or the time of it is over by then, and nobody saw it stop.
        assert_eq!(news(&mut restarted(), &[alert(9, false)]), [(9, false)]);
    }
}
