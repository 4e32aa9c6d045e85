//! The command line as people and programs use it: the real binary, real processes, real files.

#[path = "suite/a2a.rs"]
mod a2a;
#[path = "suite/answers.rs"]
mod answers;
#[path = "suite/around.rs"]
mod around;
#[path = "suite/askers.rs"]
mod askers;
#[path = "suite/attach.rs"]
mod attach;
#[path = "suite/attempts.rs"]
mod attempts;
#[path = "suite/bad_input.rs"]
mod bad_input;
#[path = "suite/changes.rs"]
mod changes;
#[path = "suite/clean.rs"]
mod clean;
#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/costs.rs"]
mod costs;
#[path = "suite/council.rs"]
mod council;
#[path = "suite/damage.rs"]
mod damage;
#[path = "suite/database.rs"]
mod database;
#[path = "suite/demo.rs"]
mod demo;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/doors.rs"]
mod doors;
#[path = "suite/echoes.rs"]
mod echoes;
#[path = "suite/first_contact.rs"]
mod first_contact;
#[path = "suite/frames.rs"]
mod frames;
#[path = "suite/front.rs"]
mod front;
#[path = "suite/ground.rs"]
mod ground;
#[path = "suite/guide.rs"]
mod guide;
#[path = "suite/held.rs"]
mod held;
#[path = "suite/hostile_agents.rs"]
mod hostile_agents;
#[path = "suite/ledger.rs"]
mod ledger;
#[path = "suite/leftovers.rs"]
mod leftovers;
#[path = "suite/locks.rs"]
mod locks;
#[path = "suite/mcp.rs"]
mod mcp;
#[path = "suite/mcp_cli.rs"]
mod mcp_cli;
#[path = "suite/mcp_kits.rs"]
mod mcp_kits;
#[path = "suite/mcp_rights.rs"]
mod mcp_rights;
#[path = "suite/mcp_stdio.rs"]
mod mcp_stdio;
#[path = "suite/messages.rs"]
mod messages;
#[path = "suite/newcomer.rs"]
mod newcomer;
#[path = "suite/orders.rs"]
mod orders;
#[path = "suite/orphans.rs"]
mod orphans;
#[path = "suite/outsider.rs"]
mod outsider;
#[path = "suite/page.rs"]
mod page;
#[path = "../../stafette-sandbox/tests/machine/parts.rs"]
mod parts;
#[path = "suite/people.rs"]
mod people;
#[path = "suite/phases.rs"]
mod phases;
#[path = "suite/planted.rs"]
mod planted;
#[path = "suite/plugin.rs"]
mod plugin;
#[path = "suite/project.rs"]
mod project;
#[path = "suite/real_cli.rs"]
mod real_cli;
#[path = "suite/renamed.rs"]
mod renamed;
#[path = "suite/renewal.rs"]
mod renewal;
#[path = "suite/reviews.rs"]
mod reviews;
#[path = "suite/revisions.rs"]
mod revisions;
#[path = "suite/rights.rs"]
mod rights;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/sandbox.rs"]
mod sandbox;
#[path = "suite/schemathesis.rs"]
mod schemathesis;
#[path = "suite/secrets.rs"]
mod secrets;
#[path = "suite/silence.rs"]
mod silence;
#[path = "suite/stages.rs"]
mod stages;
#[path = "suite/strangers.rs"]
mod strangers;
#[path = "suite/survivors.rs"]
mod survivors;
#[path = "suite/telemetry.rs"]
mod telemetry;
#[path = "suite/tellings.rs"]
mod tellings;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/top.rs"]
mod top;
#[path = "suite/traces.rs"]
mod traces;
#[path = "suite/trust.rs"]
mod trust;
#[path = "suite/web.rs"]
mod web;
#[path = "suite/world.rs"]
mod world;
