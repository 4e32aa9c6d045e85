//! `[knowledge]`: threads, graph, calendar, constitution, returns and learned parameters. All off
//! if absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notify::minutes_of;
use super::weights::Weights;
use crate::Millis;

/// The knowledge features and their backends.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Knowledge {
    /// The backend of the graph.
    pub graph: GraphHome,
    /// The server, for `graph = "neo4j"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neo4j: Option<Neo4j>,
    /// The document with the principles that every recommendation is checked against, relative to
    /// this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constitution: Option<String>,
    /// The file with the goals, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<String>,
    /// The agent that looks for patterns alongside the others from the beginning of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<crate::AgentName>,
    /// The backend of the calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarHome>,
    /// The working hours, in which work can be planned and people can be asked.
    pub week: Week,
    /// The handling of questions while no one can answer.
    pub people: People,
    /// The weight of each term of a return, before anything is learned.
    pub roi: Weights,
    /// The thresholds for reporting a pattern.
    pub mind: Mind,
}

/// The backend of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphHome {
    /// A file managed by Stafette.
    #[default]
    Sqlite,
    /// A Neo4j server, set in `[knowledge.neo4j]`.
    Neo4j,
}

/// The connection to a Neo4j server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Neo4j {
    /// The address, such as `bolt://127.0.0.1:7687`; `bolt+s://` with TLS.
    pub uri: String,
    /// The environment variable with the user name; the user is `neo4j` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_env: Option<String>,
    /// The environment variable with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The name of the database; the server's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

/// The backend of the calendar: a folder of iCalendar files, or a CalDAV server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct CalendarHome {
    /// The folder, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The address of a CalDAV server or of a calendar on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name of the calendar, if the server has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The environment variable with the user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_env: Option<String>,
    /// The environment variable with the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The interval for checking whether events were moved or deleted.
    pub look: Millis,
    /// The time span ahead in which free time is searched.
    pub ahead: Millis,
}

impl Default for CalendarHome {
    fn default() -> Self {
        CalendarHome {
            folder: None,
            url: None,
            name: None,
            user_env: None,
            password_env: None,
            look: Millis::minutes(1),
            ahead: Millis::hours(14 * 24),
        }
    }
}

/// The working hours of a week.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Week {
    /// The time zone, such as `Europe/Vienna`.
    pub timezone: String,
    /// The working hours of a day, such as `09:00-12:00`, in order.
    pub hours: Vec<String>,
    /// The working days of a week.
    pub days: Vec<Day>,
    /// The time kept free before and after every other event.
    pub buffer: Millis,
    /// The shortest block that is planned.
    pub shortest: Millis,
    /// The longest block; longer tasks get several.
    pub longest: Millis,
    /// The grid for the start of blocks within an hour.
    pub step: Millis,
}

impl Default for Week {
    fn default() -> Self {
        Week {
            timezone: "UTC".into(),
            hours: vec!["09:00-12:00".into(), "13:00-17:00".into()],
            days: vec![Day::Monday, Day::Tuesday, Day::Wednesday, Day::Thursday, Day::Friday],
            buffer: Millis::minutes(10),
            shortest: Millis::minutes(30),
            longest: Millis::hours(3),
            step: Millis::minutes(15),
        }
    }
}

/// A day of the week.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they say what they are")]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// The handling of questions while no one can answer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct People {
    /// The action for a question whose time runs out while no one can answer it.
    pub when_away: WhenAway,
    /// The hours in which no one is asked, such as `22:00-07:00`, in the time zone of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<String>,
}

/// The handling of a question while no one can answer it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenAway {
    /// The deadline stays as it is.
    #[default]
    Ignore,
    /// Time in which no one can answer does not count: the deadline moves.
    Move,
    /// If no one can answer before the deadline, the default is taken immediately; without one, the
    /// deadline moves.
    Default,
}

/// The thresholds for reporting a pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Mind {
    /// The minimum number of samples for times, estimates, returns and delays.
    pub samples: usize,
    /// The minimum number of samples for shares: failures, escalations, loops.
    pub share_samples: usize,
    /// The minimum number of samples for outliers.
    pub outlier_samples: usize,
    /// The number of the newest runs that are analysed.
    pub runs: usize,
}

impl Default for Mind {
    fn default() -> Self {
        Mind { samples: 5, share_samples: 8, outlier_samples: 10, runs: 500 }
    }
}

/// Parses a text such as `09:00-12:00` into minutes after midnight; the end may be `24:00`.
pub fn span_of(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-')?;
    let end = match to.trim() {
        "24:00" => 24 * 60,
        to => minutes_of(to)?,
    };
    Some((minutes_of(from.trim())?, end))
}

impl Week {
    /// Returns the hours of each day from Monday, in minutes after midnight; invalid ones are left
    /// out.
    pub fn pieces(&self) -> [Vec<(u16, u16)>; 7] {
        let hours: Vec<(u16, u16)> = self.hours.iter().filter_map(|text| span_of(text)).collect();
        let mut days: [Vec<(u16, u16)>; 7] = Default::default();
        for day in &self.days {
            days[*day as usize].clone_from(&hours);
        }
        days
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_14_the_hours_of_the_week_are_read_in_minutes() {
        assert_eq!(span_of("09:00-12:30"), Some((540, 750)));
        assert_eq!(span_of("22:00 - 24:00"), Some((1320, 1440)));
        for wrong in ["9-12", "09:00", "25:00-26:00", ""] {
            assert_eq!(span_of(wrong), None, "{wrong}");
        }
        let days = Week::default().pieces();
        assert_eq!(days[0], [(540, 720), (780, 1020)]);
        assert!(days[5].is_empty() && days[6].is_empty());
    }
}
