-- Text is kept as the bytes it is made of: PostgreSQL's own text cannot hold every character (U+0000)
-- and is limited to what the database's encoding knows.

-- One row. `head` is the last position that was given: whoever writes holds this row until the
-- commit, so positions become visible in order, and none is given twice.
CREATE TABLE store (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    head    BIGINT  NOT NULL
) WITH (fillfactor = 50);
INSERT INTO store (one, version, head) VALUES (1, 0, 0);

CREATE TABLE events (
    position BIGINT NOT NULL PRIMARY KEY,
    run      UUID   NOT NULL,
    seq      BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    name     BYTEA  NOT NULL,
    handoff  BIGINT,
    body     BYTEA  NOT NULL
);
CREATE UNIQUE INDEX events_by_run ON events (run, seq);
CREATE INDEX events_by_handoff ON events (run, handoff, seq) WHERE handoff IS NOT NULL;

-- `tail` is the id read from its end: people type the last digits.
CREATE TABLE runs (
    run         UUID   NOT NULL PRIMARY KEY,
    tail        UUID   NOT NULL,
    workflow    BYTEA  NOT NULL,
    title       BYTEA  NOT NULL,
    status      BYTEA  NOT NULL,
    waiting_on  BYTEA,
    seq         BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    finished_at BIGINT,
    body        BYTEA  NOT NULL
);
CREATE INDEX runs_by_tail ON runs (tail);
CREATE INDEX runs_by_age ON runs (created_at, run);
CREATE INDEX runs_by_status ON runs (status, created_at, run);
CREATE INDEX runs_unfinished ON runs (created_at, run) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run) WHERE finished_at IS NOT NULL;

CREATE TABLE handoffs (
    run        UUID    NOT NULL,
    id         BIGINT  NOT NULL,
    giver      BYTEA   NOT NULL,
    taker      BYTEA   NOT NULL,
    reason     BYTEA   NOT NULL,
    state      BYTEA   NOT NULL,
    question   BOOLEAN NOT NULL,
    opened_at  BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    closed_at  BIGINT,
    body       BYTEA   NOT NULL,
    PRIMARY KEY (run, id)
);
CREATE INDEX handoffs_open_questions ON handoffs (opened_at, run, id) WHERE question;

CREATE TABLE snapshots (
    run  UUID   NOT NULL,
    seq  BIGINT NOT NULL,
    body BYTEA  NOT NULL,
    PRIMARY KEY (run, seq)
);

-- One row: the number of the last entry, and the last fencing number. Neither ever falls.
CREATE TABLE lock_book (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    version BIGINT  NOT NULL,
    fence   BIGINT  NOT NULL
);
INSERT INTO lock_book (one, version, fence) VALUES (1, 0, 0);

CREATE TABLE locks (
    id   BIGINT  NOT NULL PRIMARY KEY,
    held BOOLEAN NOT NULL,
    body BYTEA   NOT NULL
);

-- The newest only.
CREATE TABLE lock_entries (
    seq  BIGINT NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL,
    name BYTEA  NOT NULL,
    body BYTEA  NOT NULL
);
