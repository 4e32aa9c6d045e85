-- One row: the number of the last entry, and the last fencing number. Neither ever falls.
CREATE TABLE lock_book (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    fence   INTEGER NOT NULL
) STRICT;
INSERT INTO lock_book (one, version, fence) VALUES (1, 0, 0);

CREATE TABLE locks (
    id   INTEGER NOT NULL PRIMARY KEY,
    held INTEGER NOT NULL,
    body TEXT    NOT NULL
) STRICT;

-- The newest only.
CREATE TABLE lock_entries (
    seq  INTEGER NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL,
    name TEXT    NOT NULL,
    body TEXT    NOT NULL
) STRICT;
