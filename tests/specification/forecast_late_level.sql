-- The forecast ladder: what the late round of a level begins with (step 9 of docs/ngrams.md).
-- In: kept_standing, kept_undecided. Out: standing and undecided, as round 2 has them.
CREATE OR REPLACE TEMP TABLE standing AS
SELECT user_id, gram, run
FROM kept_standing
WHERE level = $level;

CREATE OR REPLACE TEMP TABLE undecided AS
SELECT gram, key, cell, 0 AS first, is_held
FROM kept_undecided
WHERE level = $level;
