-- One row if more users hold a sequence than the plan says, else none. That is all that leaves the
-- engine.
-- In: one_sequence_each (user_id, tokens).
SELECT true AS more
FROM one_sequence_each
HAVING count(*) > $users;
