-- The forecast ladder, round 1 (step 2 of docs/ngrams.md): every valid gram gets noise, and
-- stands in a row: its class, and the bin of its noised weight. What a run may see is how many
-- grams each row has.
-- In: held; released, forecasts, lifts and public_grams, as for held; bins (bin, start), public.
-- Out: round_1 (gram, key, class, bin, noisy, somebodys).
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
    SELECT gram, key, class, CAST(sum(weight) AS BIGINT) AS weight, true AS somebodys
    FROM weighed
    GROUP BY gram, key, class
),

below AS (
    SELECT
        released.tokens,
        forecasts.as_first,
        forecasts.as_last,
        forecasts.expected_first,
        forecasts.expected_last,
        row_number() OVER (ORDER BY released.tokens) - 1 AS number
    FROM released
    INNER JOIN forecasts ON released.tokens = forecasts.tokens
    WHERE released.level = $level - 1
),

-- Valid grams that no user holds, with weight 0. (An engine draws how many of them are in each row
-- from the same distribution, and stores those that pass: udfs/draws/absent.py.)
absent AS (
    SELECT
        list_append(firsts.tokens, lasts.tokens[-1]) AS gram,
        (firsts.number << 32) + lasts.number AS key,
        coalesce(public_grams.class, firsts.as_first + lasts.as_last + lifts.shift) AS class,
        0 AS weight,
        false AS somebodys
    FROM below AS firsts
    INNER JOIN below AS lasts ON firsts.tokens[2:] = lasts.tokens[:-2]
    INNER JOIN lifts ON firsts.expected_first + lasts.expected_last = lifts.expected
    LEFT JOIN public_grams ON list_append(firsts.tokens, lasts.tokens[-1]) = public_grams.gram
    ANTI JOIN histogram ON list_append(firsts.tokens, lasts.tokens[-1]) = histogram.gram
    WHERE $noise
),

valid AS (
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
        somebodys,
        weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose || '/round 1') AS noisy
    FROM valid
)

SELECT
    noised.gram,
    noised.key,
    noised.class,
    noised.noisy,
    noised.somebodys,
    coalesce(bins.bin, 0) AS bin
FROM noised
ASOF LEFT JOIN bins ON noised.noisy >= bins.start;
