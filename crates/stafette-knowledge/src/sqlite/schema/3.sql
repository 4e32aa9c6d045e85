-- What was made last, and what is not over yet, without a look at all that was before.
CREATE INDEX nodes_by_age ON nodes (label, made_at, id);
CREATE INDEX proposals_by_end ON proposals (end_at);
