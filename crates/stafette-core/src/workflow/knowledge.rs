//! `[knowledge]`: threads, graph, calendar, constitution, returns and what is learned. Without it
//! there are none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::notify::minutes_of;
use super::weights::Weights;
use crate::Millis;

/// What is known and planned, and where it is kept.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Knowledge {
    /// Where the graph is kept.
    pub graph: GraphHome,
    /// The server, for `graph = "neo4j"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neo4j: Option<Neo4j>,
    /// The document with the principles that every recommendation has to answer, relative to this
    /// file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constitution: Option<String>,
    /// The file with the goals, relative to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<String>,
    /// The agent who looks for patterns beside the others from the beginning of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<crate::AgentName>,
    /// Where events are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarHome>,
    /// When work can be done, and when people can be asked.
    pub week: Week,
    /// What happens to questions while nobody can answer.
    pub people: People,
    /// What each part of a return counts, before anything is learned.
    pub roi: Weights,
    /// From when on a pattern is told.
    pub mind: Mind,
}

/// Where the graph is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphHome {
    /// In a file of Stafette's own.
    #[default]
    Sqlite,
    /// In a Neo4j server.
    Neo4j,
}

/// A Neo4j server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Neo4j {
    /// Where it is, such as `bolt://127.0.0.1:7687`.
    pub uri: String,
    /// The environment variable with the user's name; `neo4j` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_env: Option<String>,
    /// The environment variable with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The database; the server's own choice otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

/// Where events are kept: a folder of iCalendar files, or a CalDAV server.
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
    /// The calendar's name, where the server has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The environment variable with the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_env: Option<String>,
    /// The environment variable with the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// How often to look whether somebody moved or deleted something.
    pub look: Millis,
    /// How far ahead room is looked for.
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

/// When work can be done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Week {
    /// Where the clock hangs, such as `Europe/Vienna`.
    pub timezone: String,
    /// The hours of a day of work, such as `09:00-12:00`, in order.
    pub hours: Vec<String>,
    /// The days of work.
    pub days: Vec<Day>,
    /// What stays free before and after everything else.
    pub buffer: Millis,
    /// The shortest block that is worth beginning.
    pub shortest: Millis,
    /// The longest block; longer tasks get several.
    pub longest: Millis,
    /// Blocks begin at multiples of this within an hour.
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

/// What happens to questions while nobody can answer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct People {
    /// What becomes of a question whose time runs out while nobody can answer it.
    pub when_away: WhenAway,
    /// When nobody is asked, such as `22:00-07:00`, in the zone of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<String>,
}

/// What becomes of a question while nobody can answer it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenAway {
    /// Its time runs whoever is there.
    #[default]
    Ignore,
    /// Time in which nobody can answer does not count: the deadline moves.
    Move,
    /// If nobody can answer before the deadline, its default is taken at once; without one, the
    /// deadline moves.
    Default,
}

/// From when on a pattern is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Mind {
    /// The fewest samples for times, estimates, returns and slips.
    pub samples: usize,
    /// The fewest samples for shares: failures, escalations, loops.
    pub share_samples: usize,
    /// The fewest samples for outliers.
    pub outlier_samples: usize,
    /// How many of the newest runs are looked through.
    pub runs: usize,
}

impl Default for Mind {
    fn default() -> Self {
        Mind { samples: 5, share_samples: 8, outlier_samples: 10, runs: 500 }
    }
}

/// The minutes after midnight of a text such as `09:00-12:00`; the end may be `24:00`.
#[must_use]
pub fn span_of(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-')?;
    let end = match to.trim() {
        "24:00" => 24 * 60,
        to => minutes_of(to)?,
    };
    Some((minutes_of(from.trim())?, end))
}

impl Week {
    /// The hours of each day from Monday, in minutes after midnight; what cannot be read is left
    /// out.
    #[must_use]
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
