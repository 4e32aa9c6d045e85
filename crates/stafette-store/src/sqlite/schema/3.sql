-- A checksum over everything else in the row. Rows that were written without one are unchecked.
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE runs ADD COLUMN sum INTEGER;
ALTER TABLE handoffs ADD COLUMN sum INTEGER;
ALTER TABLE snapshots ADD COLUMN sum INTEGER;
ALTER TABLE locks ADD COLUMN sum INTEGER;
ALTER TABLE lock_entries ADD COLUMN sum INTEGER;
ALTER TABLE lock_book ADD COLUMN sum INTEGER;
