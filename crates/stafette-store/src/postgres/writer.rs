//! The only task that writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::time::Instant;

use stafette_model::{HandoffId, RunId};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::fault::{self, PostgresError};
use super::link::{BEGIN, Columns, Link, Params, column, number, only, params, signed};
use super::session::{Deed, Session};
use crate::stats::Counters;
use crate::{
    AppendError, Batch, Entry, HandoffRow, Reply, RunRow, Snapshot, checksum, digits, queue,
};

/// Any other work for the task.
pub(super) type Upkeep = Box<dyn for<'a> FnOnce(&'a mut Session) -> Reply<'a, ()> + Send>;

/// A request to the task.
pub(super) type Job = queue::Job<Upkeep>;

/// Every writer locks this row until its commit. It also tells which table it is in.
pub(super) const TURN: &str = "SELECT head, tableoid::int8 FROM store FOR UPDATE";

const KNOWN: &str = "SELECT run, seq FROM runs WHERE run = ANY($1)";
const EVENTS: &str = "INSERT INTO events (position, run, seq, at, name, handoff, body, sum) \
     SELECT * FROM unnest($1::int8[], $2::uuid[], $3::int8[], $4::int8[], $5::bytea[], \
                          $6::int8[], $7::bytea[], $8::int8[])";
const RUNS: &str = "INSERT INTO runs (run, tail, workflow, title, status, waiting_on, seq, \
                                      created_at, updated_at, finished_at, body, sum) \
     SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[], \
                          $6::bytea[], $7::int8[], $8::int8[], $9::int8[], $10::int8[], \
                          $11::bytea[], $12::int8[]) \
     ON CONFLICT (run) DO UPDATE SET \
         workflow = excluded.workflow, title = excluded.title, status = excluded.status, \
         waiting_on = excluded.waiting_on, seq = excluded.seq, \
         created_at = excluded.created_at, updated_at = excluded.updated_at, \
         finished_at = excluded.finished_at, body = excluded.body, sum = excluded.sum";
const HANDOFFS: &str = "INSERT INTO handoffs (run, id, giver, taker, reason, state, question, \
                                              opened_at, updated_at, closed_at, body, \
                                              sum) \
     SELECT * FROM unnest($1::uuid[], $2::int8[], $3::bytea[], $4::bytea[], $5::bytea[], \
                          $6::bytea[], $7::bool[], $8::int8[], $9::int8[], $10::int8[], \
                          $11::bytea[], $12::int8[]) \
     ON CONFLICT (run, id) DO UPDATE SET \
         giver = excluded.giver, taker = excluded.taker, reason = excluded.reason, \
         state = excluded.state, question = excluded.question, \
         opened_at = excluded.opened_at, updated_at = excluded.updated_at, \
         closed_at = excluded.closed_at, body = excluded.body, sum = excluded.sum";
const SNAPSHOTS: &str = "INSERT INTO snapshots (run, seq, body, sum) \
     SELECT * FROM unnest($1::uuid[], $2::int8[], $3::bytea[], $4::int8[]) \
     ON CONFLICT (run, seq) DO UPDATE SET body = excluded.body, sum = excluded.sum";
const HEAD: &str = "UPDATE store SET head = $1";
const THERE: &str = "SELECT 1 FROM events \
     WHERE position = $1 AND run = $2 AND seq = $3 AND at = $4 AND body = $5";

/// The tables of an open store: they have to stay the ones that were opened.
#[derive(Debug)]
pub(super) struct Ground {
    /// The table with the last position.
    pub(super) table: u64,
    /// Why the store is lost, once that was noticed.
    pub(super) lost: OnceLock<String>,
}

impl Ground {
    /// Notes the tables of the open store.
    pub(super) async fn of(link: &mut Link) -> Result<Self, PostgresError> {
        let table = link.number("SELECT tableoid::int8 FROM store").await?;
        Ok(Ground { table, lost: OnceLock::new() })
    }
}

/// Works until it is stopped or all senders are gone.
pub(super) async fn work(
    mut session: Session,
    mut jobs: mpsc::Receiver<Job>,
    ground: &Ground,
    counters: &Counters,
) {
    let mut next = None;
    loop {
        let job = match next.take() {
            Some(job) => job,
            None => match jobs.recv().await {
                Some(job) => job,
                None => return,
            },
        };
        match job {
            Job::Append(first) => {
                let appends;
                (appends, next) = queue::gather(*first, &mut jobs);
                let begun = Instant::now();
                let batches = appends.iter().map(|append| &append.batch).collect();
                let mut group = Group::new(batches, ground.table);
                let written = session.carry_out(&mut group).await.map_err(fault::append);
                if let Err(AppendError::Lost { why }) = &written {
                    let _ = ground.lost.set(why.clone());
                }
                queue::answer(appends, written, begun, counters);
            }
            Job::Upkeep(task) => task(&mut session).await,
            Job::Stop(answer) => {
                // Pending callers learn from the dropped sender that the store is closed.
                drop(jobs);
                drop(session);
                let _ = answer.send(());
                return;
            }
        }
    }
}

/// Result of each batch of a group.
type Answers = Vec<Result<u64, AppendError>>;

/// Batches that are written in one transaction. A conflicting batch writes nothing, so it cannot
/// harm the others.
pub(super) struct Group<'a> {
    batches: Vec<&'a Batch>,
    table: u64,
    /// First event that was sent, and the results to return if it is stored.
    sent: Option<(u64, RunId, &'a Entry, Answers)>,
}

impl<'a> Group<'a> {
    pub(super) fn new(batches: Vec<&'a Batch>, table: u64) -> Self {
        Group { batches, table, sent: None }
    }
}

impl Deed for Group<'_> {
    type Done = Answers;

    async fn write(&mut self, link: &mut Link) -> Result<Answers, PostgresError> {
        self.sent = None;
        let mut runs: Vec<Uuid> = self.batches.iter().map(|batch| batch.run.0).collect();
        runs.sort_unstable();
        runs.dedup();
        let steps: &[(_, Params<'_>)] = &[(TURN, &[]), (KNOWN, &[&runs])];
        let answers = link.together(BEGIN, steps, "").await?;
        let turn = only(&answers[0])?;
        if number(turn, 1)? != self.table {
            return Err(PostgresError::Replaced);
        }
        let head = number(turn, 0)?;
        let mut last = HashMap::new();
        for row in &answers[1] {
            last.insert(RunId(row.try_get(0)?), number(row, 1)?);
        }
        let plan = Plan::new(&self.batches, head, last);
        if plan.runs.is_empty() {
            link.plain("ROLLBACK").await?;
            return Ok(plan.answers);
        }
        self.sent = plan
            .events
            .first()
            .map(|(position, run, entry)| (*position, *run, *entry, plan.answers.clone()));
        plan.write(link).await?;
        Ok(plan.answers)
    }

    async fn landed(&mut self, link: &mut Link) -> Result<Option<Answers>, PostgresError> {
        // A group without events can be repeated: that changes nothing.
        let Some((position, run, entry, told)) = self.sent.take() else { return Ok(None) };
        let (position, seq, body) = (signed(position), signed(entry.seq), entry.body.as_bytes());
        // Once the row lock is ours, the lost connection's transaction has ended, one way or the
        // other.
        let steps: &[(_, Params<'_>)] =
            &[(TURN, &[]), (THERE, &[&position, &run.0, &seq, &entry.at.0, &body])];
        let answers = link.together(BEGIN, steps, "COMMIT").await?;
        Ok((!answers[1].is_empty()).then_some(told))
    }
}

/// Rows that a group writes. Of several rows for the same key, the last one wins.
struct Plan<'a> {
    answers: Answers,
    head: u64,
    events: Vec<(u64, RunId, &'a Entry)>,
    runs: BTreeMap<RunId, &'a RunRow>,
    handoffs: BTreeMap<(RunId, HandoffId), &'a HandoffRow>,
    snapshots: BTreeMap<(RunId, u64), &'a Snapshot>,
}

impl<'a> Plan<'a> {
    fn new(batches: &[&'a Batch], head: u64, mut last: HashMap<RunId, u64>) -> Self {
        let mut plan = Plan {
            answers: Vec::with_capacity(batches.len()),
            head,
            events: Vec::new(),
            runs: BTreeMap::new(),
            handoffs: BTreeMap::new(),
            snapshots: BTreeMap::new(),
        };
        for batch in batches {
            let (run, expected) = (batch.run, batch.expected_seq);
            let found = last.get(&run).copied().unwrap_or(0);
            if found != expected {
                plan.answers.push(Err(AppendError::Conflict { run, expected, found }));
                continue;
            }
            last.insert(run, batch.row.seq);
            for entry in &batch.entries {
                plan.head += 1;
                plan.events.push((plan.head, run, entry));
            }
            plan.runs.insert(run, &batch.row);
            plan.handoffs.extend(batch.handoffs.iter().map(|row| ((run, row.id), row)));
            plan.snapshots.extend(batch.snapshot.iter().map(|it| ((run, it.seq), it)));
            plan.answers.push(Ok(plan.head));
        }
        plan
    }

    async fn write(&self, link: &mut Link) -> Result<(), PostgresError> {
        let rows: Vec<&RunRow> = self.runs.values().copied().collect();
        let hands: Vec<&HandoffRow> = self.handoffs.values().copied().collect();
        let snaps: Vec<_> = self.snapshots.iter().map(|((run, _), it)| (*run, *it)).collect();
        let tables: [(&'static str, usize, Columns<'_>); 5] = [
            (EVENTS, self.events.len(), events(&self.events)),
            (RUNS, rows.len(), runs(&rows)),
            (HANDOFFS, hands.len(), handoffs(&hands)),
            (SNAPSHOTS, snaps.len(), snapshots(&snaps)),
            (HEAD, self.events.len(), vec![Box::new(signed(self.head))]),
        ];
        let filled = tables.iter().filter(|(_, rows, _)| *rows > 0);
        let params: Vec<_> = filled.map(|(sql, _, columns)| (*sql, params(columns))).collect();
        let steps: Vec<(&'static str, Params<'_>)> =
            params.iter().map(|(sql, params)| (*sql, params.as_slice())).collect();
        link.together("", &steps, "COMMIT").await.map(drop)
    }
}

fn events<'a>(rows: &[(u64, RunId, &'a Entry)]) -> Columns<'a> {
    vec![
        column(rows, |row| signed(row.0)),
        column(rows, |row| row.1.0),
        column(rows, |row| signed(row.2.seq)),
        column(rows, |row| row.2.at.0),
        column(rows, |row| row.2.name.as_bytes()),
        column(rows, |row| row.2.handoff.map(|id| i64::from(id.0))),
        column(rows, |row| row.2.body.as_bytes()),
        column(rows, |row| checksum::event(row.1, row.2)),
    ]
}

fn runs<'a>(rows: &[&'a RunRow]) -> Columns<'a> {
    vec![
        column(rows, |row| row.run.0),
        column(rows, |row| Uuid::from_bytes(digits::reversed(row.run))),
        column(rows, |row| row.workflow.as_bytes()),
        column(rows, |row| row.title.as_bytes()),
        column(rows, |row| row.status.as_bytes()),
        column(rows, |row| row.waiting_on.as_ref().map(|word| word.as_bytes())),
        column(rows, |row| signed(row.seq)),
        column(rows, |row| row.created_at.0),
        column(rows, |row| row.updated_at.0),
        column(rows, |row| row.finished_at.map(|at| at.0)),
        column(rows, |row| row.body.as_bytes()),
        column(rows, checksum::run),
    ]
}

fn handoffs<'a>(rows: &[&'a HandoffRow]) -> Columns<'a> {
    vec![
        column(rows, |row| row.run.0),
        column(rows, |row| i64::from(row.id.0)),
        column(rows, |row| row.from.as_bytes()),
        column(rows, |row| row.to.as_bytes()),
        column(rows, |row| row.reason.as_bytes()),
        column(rows, |row| row.state.as_bytes()),
        column(rows, |row| row.question),
        column(rows, |row| row.opened_at.0),
        column(rows, |row| row.updated_at.0),
        column(rows, |row| row.closed_at.map(|at| at.0)),
        column(rows, |row| row.body.as_bytes()),
        column(rows, checksum::handoff),
    ]
}

fn snapshots<'a>(rows: &[(RunId, &'a Snapshot)]) -> Columns<'a> {
    vec![
        column(rows, |row| row.0.0),
        column(rows, |row| signed(row.1.seq)),
        column(rows, |row| row.1.body.as_bytes()),
        column(rows, |row| checksum::snapshot(row.0, row.1)),
    ]
}
