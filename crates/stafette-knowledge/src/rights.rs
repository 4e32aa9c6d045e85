//! Read and write permissions: the seed's "used by" lists as one table, and the one function that
//! grants or refuses.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Party;
use thiserror::Error;

use crate::graph::{Batch, Label, Write};

/// A kind of data that permissions apply to.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Threads and their messages in the history.
    History,
    /// Goals in the graph.
    Goals,
    /// Summaries of discussions in the graph.
    Discussions,
    /// Decisions in the graph.
    Decisions,
    /// Tasks in the graph.
    Tasks,
    /// Insights in the graph.
    Insights,
    /// Handoffs as the graph mirrors them.
    Handoffs,
    /// Events of the calendar.
    Calendar,
    /// Learned weights and estimates.
    Parameters,
}

impl Data {
    /// All kinds of data.
    pub const ALL: [Data; 9] = [
        Data::History,
        Data::Goals,
        Data::Discussions,
        Data::Decisions,
        Data::Tasks,
        Data::Insights,
        Data::Handoffs,
        Data::Calendar,
        Data::Parameters,
    ];
}

impl From<Label> for Data {
    /// Returns the kind of data that nodes of a label are.
    fn from(label: Label) -> Self {
        match label {
            Label::Decision => Data::Decisions,
            Label::Discussion => Data::Discussions,
            Label::Goal => Data::Goals,
            Label::Handoff => Data::Handoffs,
            Label::Insight => Data::Insights,
            Label::Task => Data::Tasks,
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Data::History => "history",
            Data::Goals => "goals",
            Data::Discussions => "discussions",
            Data::Decisions => "decisions",
            Data::Tasks => "tasks",
            Data::Insights => "insights",
            Data::Handoffs => "handoffs",
            Data::Calendar => "calendar",
            Data::Parameters => "parameters",
        })
    }
}

/// The kind of access.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reading without changing anything.
    Read,
    /// Creating or changing data.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
        })
    }
}

/// A refused access. The text is meant for the log and for the caller.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{who} may not {access} {data}: {why}")]
pub struct Refused {
    pub who: Party,
    pub access: Access,
    pub data: Data,
    pub why: String,
}

/// The data that Stafette itself writes: the discussions that it records, the mirror of its
/// handoffs, and the progress of decisions.
const OWN: [Data; 4] = [Data::History, Data::Handoffs, Data::Decisions, Data::Tasks];

/// The permissions of one role.
struct Grant {
    role: &'static str,
    reads: &'static [Data],
    writes: &'static [Data],
}

const TABLE: [Grant; 4] = [
    Grant {
        role: "discuss",
        reads: &[Data::History, Data::Goals, Data::Calendar],
        writes: &[Data::History, Data::Discussions],
    },
    Grant {
        role: "decisions",
        reads: &[Data::History, Data::Goals, Data::Insights],
        writes: &[Data::History, Data::Decisions],
    },
    Grant {
        role: "execute",
        reads: &[Data::History, Data::Decisions, Data::Calendar],
        writes: &[Data::History, Data::Tasks, Data::Calendar],
    },
    Grant {
        role: "mind",
        reads: &[
            Data::History,
            Data::Goals,
            Data::Discussions,
            Data::Decisions,
            Data::Tasks,
            Data::Insights,
            Data::Handoffs,
        ],
        writes: &[Data::History, Data::Insights],
    },
];

/// Checks that `who`, acting in a role, may do this. A person may do everything; Stafette itself
/// reads everything and writes only the data that it keeps automatically.
///
/// # Errors
/// States what was refused and by which rule; the caller writes that to the log.
pub fn check(who: &Party, access: Access, data: Data) -> Result<(), Refused> {
    let refused = |why: String| Err(Refused { who: who.clone(), access, data, why });
    let role = match who {
        Party::Human => return Ok(()),
        Party::Orchestrator => {
            return match access {
                Access::Read => Ok(()),
                Access::Write if OWN.contains(&data) => Ok(()),
                Access::Write => refused("that is for its agents or a person".into()),
            };
        }
        Party::Agent(name) => name,
    };
    let Some(grant) = TABLE.iter().find(|grant| grant.role == role.as_ref()) else {
        return refused(format!("`{role}` is none of the roles {}", roles().join(", ")));
    };
    let granted = match access {
        Access::Read => grant.reads,
        Access::Write => grant.writes,
    };
    if granted.contains(&data) {
        return Ok(());
    }
    let list: Vec<String> = granted.iter().map(Data::to_string).collect();
    refused(format!("the role `{role}` may {access} {}", list.join(", ")))
}

/// Returns the roles that have any permission.
pub fn roles() -> Vec<&'static str> {
    TABLE.iter().map(|grant| grant.role).collect()
}

/// Calls [`check`] for all writes of a batch: a link belongs to the node that it starts at.
///
/// # Errors
/// The first refusal, which is also logged.
pub fn check_batch(who: &Party, batch: &Batch) -> Result<(), Refused> {
    batch.writes.iter().try_for_each(|write| {
        let label = match write {
            Write::Put(entity) => entity.key().label,
            Write::Link { from, .. } => from.label,
        };
        enforce(who, Access::Write, label.into())
    })
}

/// Calls [`check`] and logs a refusal; for code that acts on behalf of others.
pub fn enforce(who: &Party, access: Access, data: Data) -> Result<(), Refused> {
    check(who, access, data).inspect_err(|refused| tracing::warn!("{refused}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(role: &str, access: Access) -> Vec<String> {
        let who = Party::from(role);
        let may = |data: &&Data| check(&who, access, **data).is_ok();
        Data::ALL.iter().filter(may).map(Data::to_string).collect()
    }

    #[test]
    fn s1_13_each_role_has_what_the_seed_lists_and_nothing_else() {
        let reads = |role| granted(role, Access::Read).join(" ");
        let writes = |role| granted(role, Access::Write).join(" ");
        assert_eq!(reads("discuss"), "history goals calendar");
        assert_eq!(writes("discuss"), "history discussions");
        assert_eq!(reads("decisions"), "history goals insights");
        assert_eq!(writes("decisions"), "history decisions");
        assert_eq!(reads("execute"), "history decisions calendar");
        assert_eq!(writes("execute"), "history tasks calendar");
        assert_eq!(reads("mind"), "history goals discussions decisions tasks insights handoffs");
        assert_eq!(writes("mind"), "history insights");
    }

    #[test]
    fn s1_13_a_refusal_names_who_what_and_the_rule() {
        let refused = check(&Party::from("mind"), Access::Write, Data::Decisions)
            .expect_err("mind writes insights alone");
        assert_eq!(
            refused.to_string(),
            "mind may not write decisions: the role `mind` may write history, insights"
        );
        let stranger = check(&Party::from("builder"), Access::Read, Data::Goals);
        assert!(stranger.expect_err("no such role").to_string().contains("none of the roles"));
    }

    #[test]
    fn s1_13_a_batch_is_refused_for_what_it_writes_and_not_for_what_it_leads_to() {
        use crate::graph::{NodeKey, Provenance, Relation};
        let provenance = Provenance {
            by: "execute".into(),
            at: stafette_core::Time(0),
            run: None,
            handoff: None,
        };
        let part = Write::Link {
            from: NodeKey::task("t"),
            relation: Relation::PartOf,
            to: NodeKey::decision("d"),
        };
        let batch = Batch { key: "k".into(), provenance, writes: vec![part] };
        assert!(check_batch(&"execute".into(), &batch).is_ok());
        let refused = check_batch(&"decisions".into(), &batch).expect_err("not its tasks");
        assert_eq!(refused.data, Data::Tasks);
    }

    #[test]
    fn s1_13_a_person_may_do_all_and_stafette_writes_what_it_mirrors() {
        assert_eq!(granted("human", Access::Write).len(), Data::ALL.len());
        assert_eq!(granted("orchestrator", Access::Read).len(), Data::ALL.len());
        assert_eq!(
            granted("orchestrator", Access::Write),
            ["history", "decisions", "tasks", "handoffs"]
        );
    }
}
