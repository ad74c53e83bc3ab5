-- DPNE: the probability from which rho_k follows, the least integer that the noise of the level
-- reaches with at most this probability. So the expected number of spurious grams is at most
-- $spurious times |S_(k-1)|.
-- In: released, with all levels below. Returns (probability).
WITH

below AS (
    SELECT tokens
    FROM released
    WHERE level = $level - 1
),

-- |V_k|: a valid gram is two overlapping grams of the level below.
ends AS (
    SELECT
        tokens[2:] AS overlap,
        count(*) AS grams
    FROM below
    GROUP BY ALL
),

begins AS (
    SELECT
        tokens[:-2] AS overlap,
        count(*) AS grams
    FROM below
    GROUP BY ALL
),

valid AS (
    SELECT sum(ends.grams * begins.grams) AS grams
    FROM ends
    INNER JOIN begins ON ends.overlap = begins.overlap
)

SELECT
    $spurious * coalesce(least(1, (SELECT count(*) FROM below) / valid.grams), 1) AS probability
FROM valid
