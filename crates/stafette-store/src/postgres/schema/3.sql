-- A checksum over everything else in the row. Rows that were written without one are unchecked.
ALTER TABLE events ADD COLUMN sum BIGINT;
ALTER TABLE runs ADD COLUMN sum BIGINT;
ALTER TABLE handoffs ADD COLUMN sum BIGINT;
ALTER TABLE snapshots ADD COLUMN sum BIGINT;
ALTER TABLE locks ADD COLUMN sum BIGINT;
ALTER TABLE lock_entries ADD COLUMN sum BIGINT;
ALTER TABLE lock_book ADD COLUMN sum BIGINT;
