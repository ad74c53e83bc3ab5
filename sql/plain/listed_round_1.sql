-- The forecast ladder, level 1 with a public list of words, round 1 (step 2 of docs/ngrams.md):
-- every word of the list gets noise, held or not, and so does every other word that somebody counts
-- for. Words of the list stand in a row, their class and the bin of their noised weight; others by
-- whether they reach the threshold, which releases them.
-- In: held; listed (token, number, class) and bins (bin, start), public.
-- Out: round_1 (gram, key, class, bin, noisy, somebodys).
CREATE OR REPLACE TEMP TABLE round_1 AS
WITH

-- isqrt(49/50 norm^2 / t) to each of t words, of both kinds.
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
    SELECT gram, key, class, CAST(sum(weight) AS BIGINT) AS weight, true AS somebodys
    FROM weighed
    GROUP BY gram, key, class
),

-- Words of the list that nobody holds, with a weight of 0. (An engine draws how many of them stand
-- in each row, by the same law, and writes down those that pass: udfs/draws/absent.py.)
absent AS (
    SELECT
        [listed.token] AS gram,
        CAST(listed.number AS VARCHAR) AS key,
        listed.class,
        0 AS weight,
        false AS somebodys
    FROM listed
    ANTI JOIN histogram ON [listed.token] = histogram.gram
    WHERE $noise
),

words AS (
    SELECT * FROM histogram
    UNION ALL BY NAME
    SELECT * FROM absent
),

-- Drawn once: nothing reads the noise before all of it is there.
noised AS MATERIALIZED (
    SELECT
        gram,
        key,
        class,
        somebodys,
        weight + dphh_noise(key, $sigma, $purpose || '/round 1') AS noisy
    FROM words
)

SELECT
    noised.gram,
    noised.key,
    noised.class,
    noised.noisy,
    noised.somebodys,
    CASE
        WHEN noised.class < 0 THEN CAST(noised.noisy >= $threshold AS BIGINT)
        ELSE coalesce(bins.bin, 0)
    END AS bin
FROM noised
ASOF LEFT JOIN bins ON noised.noisy >= bins.start;
