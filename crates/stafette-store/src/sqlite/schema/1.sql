-- Positions are never given twice, not even after the newest run was removed.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    run      BLOB    NOT NULL,
    seq      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    handoff  INTEGER,
    body     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_run ON events (run, seq);
CREATE INDEX events_by_handoff ON events (run, handoff, seq) WHERE handoff IS NOT NULL;

-- `tail` is the id read from its end: people type the last digits.
CREATE TABLE runs (
    run         BLOB    NOT NULL PRIMARY KEY,
    tail        BLOB    NOT NULL,
    workflow    TEXT    NOT NULL,
    title       TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    waiting_on  TEXT,
    seq         INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    finished_at INTEGER,
    body        TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_by_tail ON runs (tail);
CREATE INDEX runs_by_age ON runs (created_at, run);
CREATE INDEX runs_by_status ON runs (status, created_at, run);
CREATE INDEX runs_unfinished ON runs (created_at, run) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run) WHERE finished_at IS NOT NULL;

CREATE TABLE handoffs (
    run       BLOB    NOT NULL,
    id        INTEGER NOT NULL,
    giver     TEXT    NOT NULL,
    taker     TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    question  INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    closed_at INTEGER,
    body      TEXT    NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;
CREATE INDEX handoffs_open_questions ON handoffs (opened_at, run, id) WHERE question = 1;

CREATE TABLE snapshots (
    run  BLOB    NOT NULL,
    seq  INTEGER NOT NULL,
    body TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;
