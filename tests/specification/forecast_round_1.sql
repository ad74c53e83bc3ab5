-- The forecast ladder, round 1 (step 2 of docs/ngrams.md): every valid gram gets noise, held or
-- not, and stands in a row: its class, and the bin of its noised weight. What a run may see is how
-- many grams each row has. Words outside a list are of class -1: only held ones get noise; those
-- that reach $unlisted_threshold are released and have bin 1, others bin 0.
-- In: held; valid (gram, key, class); bins (bin, start), public.
-- Out: round_1 (gram, key, class, bin, noisy, is_held).
CREATE OR REPLACE TEMP TABLE round_1 AS
WITH

-- isqrt(49/50 norm^2 / t) to each of t grams, which is 0 if t is very large. Grams of weight 0 stay
-- in the table: which row a gram is in must depend on nothing but its noised weight and its class.
weighed AS (
    SELECT
        gram,
        key,
        class,
        dphh_isqrt(
            CAST($norm AS BIGINT) * $norm * 49 // (50 * count(*) OVER (PARTITION BY user_id))
        ) AS weight
    FROM held
),

histogram AS (
    SELECT gram, key, class, CAST(sum(weight) AS BIGINT) AS weight, true AS is_held
    FROM weighed
    GROUP BY gram, key, class
),

-- Valid grams that no user holds, with weight 0. (An engine draws how many of them are in each row
-- from the same distribution, and stores those that pass: udfs/noise/absent.py.)
absent AS (
    SELECT valid.gram, valid.key, valid.class, 0 AS weight, false AS is_held
    FROM valid
    ANTI JOIN histogram ON valid.gram = histogram.gram
    WHERE $noise
),

sums AS (
    SELECT * FROM histogram
    UNION ALL BY NAME
    SELECT * FROM absent
),

-- Materialised, so that the noise is drawn once.
noised AS MATERIALIZED (
    SELECT
        gram,
        key,
        class,
        is_held,
        weight + dphh_noise(key, $sigma, $purpose || '/round 1') AS noisy
    FROM sums
)

SELECT
    noised.*,
    CASE
        WHEN noised.class < 0 THEN CAST(noised.noisy >= $unlisted_threshold AS BIGINT)
        ELSE coalesce(bins.bin, 0)
    END AS bin
FROM noised
ASOF LEFT JOIN bins ON noised.noisy >= bins.start;
