-- Checksums are computed in another way. Rows that have one of the earlier kind are unchecked.
UPDATE events SET sum = NULL;
UPDATE runs SET sum = NULL;
UPDATE handoffs SET sum = NULL;
UPDATE snapshots SET sum = NULL;
UPDATE locks SET sum = NULL;
UPDATE lock_entries SET sum = NULL;
UPDATE lock_book SET sum = NULL;
