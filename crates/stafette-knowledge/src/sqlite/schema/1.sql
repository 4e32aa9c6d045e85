CREATE TABLE threads (
    id         TEXT PRIMARY KEY,
    module     TEXT NOT NULL,
    title      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    meta       TEXT NOT NULL
) STRICT;
CREATE INDEX threads_by_time ON threads (created_at DESC, id DESC);

CREATE TABLE messages (
    n          INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    thread_id  TEXT NOT NULL REFERENCES threads (id),
    seq        INTEGER NOT NULL,
    role       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (thread_id, seq)
) STRICT;
CREATE VIRTUAL TABLE message_words USING fts5 (
    body, content = 'messages', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_words (rowid, body) VALUES (new.n, new.body);
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
    INSERT INTO message_words (message_words, rowid, body) VALUES ('delete', old.n, old.body);
END;

CREATE TABLE nodes (
    n       INTEGER PRIMARY KEY,
    label   TEXT NOT NULL,
    id      TEXT NOT NULL,
    status  TEXT,
    sure    REAL,
    made_at INTEGER NOT NULL,
    entity  TEXT NOT NULL,
    made    TEXT NOT NULL,
    changed TEXT NOT NULL,
    UNIQUE (label, id)
) STRICT;
CREATE INDEX decisions_pending ON nodes (made_at, id) WHERE label = 'Decision' AND status = 'pending';
CREATE INDEX insights_by_certainty ON nodes (sure DESC, id) WHERE label = 'Insight';
CREATE VIRTUAL TABLE insight_words USING fts5 (
    words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
);

CREATE TABLE links (
    src      INTEGER NOT NULL REFERENCES nodes (n),
    relation TEXT NOT NULL,
    dst      INTEGER NOT NULL REFERENCES nodes (n),
    made     TEXT NOT NULL,
    PRIMARY KEY (src, relation, dst)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_back ON links (dst, relation, src);

CREATE TABLE batches (
    key    TEXT PRIMARY KEY,
    digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE waiting (
    n     INTEGER PRIMARY KEY AUTOINCREMENT,
    key   TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    batch TEXT NOT NULL
) STRICT;
CREATE TABLE set_aside (
    n     INTEGER PRIMARY KEY,
    key   TEXT NOT NULL,
    batch TEXT NOT NULL,
    why   TEXT NOT NULL
) STRICT;

CREATE TABLE versions (
    number  INTEGER PRIMARY KEY,
    version TEXT NOT NULL
) STRICT;
