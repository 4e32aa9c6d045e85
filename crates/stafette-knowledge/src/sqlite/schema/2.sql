CREATE TABLE cursors (
    name     TEXT PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE proposals (
    id       TEXT PRIMARY KEY,
    state    TEXT NOT NULL,
    run      TEXT NOT NULL,
    handoff  TEXT NOT NULL,
    start_at INTEGER NOT NULL,
    end_at   INTEGER NOT NULL,
    proposal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX proposals_by_time ON proposals (start_at, id);
CREATE INDEX proposals_by_question ON proposals (run, handoff, start_at, id);
CREATE INDEX proposals_by_state ON proposals (state, start_at, id);
