-- What can be found: the texts, their words without case and accents, and how far the index is.
CREATE TABLE texts (
    id      BIGINT   NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run     UUID     NOT NULL,
    seq     BIGINT   NOT NULL,
    handoff BIGINT,
    at      BIGINT   NOT NULL,
    kind    BYTEA    NOT NULL,
    who     BYTEA    NOT NULL,
    body    BYTEA    NOT NULL,
    words   TSVECTOR NOT NULL
);
CREATE INDEX texts_by_words ON texts USING GIN (words);
CREATE INDEX texts_by_run ON texts (run);

CREATE TABLE indexed (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    position BIGINT  NOT NULL
);
INSERT INTO indexed (one, position) VALUES (1, 0);

CREATE TABLE indexed_files (
    path  BYTEA  NOT NULL PRIMARY KEY,
    bytes BIGINT NOT NULL
);
