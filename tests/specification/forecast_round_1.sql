-- The forecast ladder, round 1 (step 2 of docs/ngrams.md): every user who holds a valid gram spends
-- a fixed part of the purse, or what is left of it; every valid gram gets noise, held or not, and
-- stands in a cell: its class, and the bin of its noised weight. What a run may see is how many
-- grams each cell has. Words outside a list are of class -1: only held ones get noise; those that
-- reach $unlisted_threshold are released and are in cell -2, others in cell -1.
-- In runs that count what they find, nobody spends of the reserve: $reserve, as dphh_free has it.
-- In: standing; purses; valid (gram, key, class); bins (bin, start), public.
-- Out: spending (user_id, number, climb, expected, purse, spent), of each user with a valid gram:
-- how many different ones; how many levels further up the user can climb, since a run of r
-- neighbouring valid grams may be one gram of a level r - 1 further up; how many finds the user is
-- expected to hold; and what is left beside the reserve. undecided (gram, key, cell, first,
-- is_held).
CREATE OR REPLACE TEMP TABLE held AS
SELECT DISTINCT standing.user_id, standing.gram, valid.key, valid.class
FROM standing
INNER JOIN valid ON standing.gram = valid.gram;

CREATE OR REPLACE TEMP TABLE spending AS
WITH

runs AS (
    SELECT user_id, count(*) AS length
    FROM standing
    GROUP BY user_id, run
),

climbs AS (
    SELECT
        user_id,
        least(max(length) - 1, $levels_after) AS climb,
        sum(list_sum(list_transform(range(length), lambda place: least(place, $levels_after))))
            AS longer
    FROM runs
    GROUP BY user_id
),

numbers AS (
    SELECT user_id, count(*) AS number
    FROM held
    GROUP BY user_id
),

beside_reserve AS (
    SELECT
        numbers.user_id,
        numbers.number,
        climbs.climb,
        dphh_expected(purses.finds, numbers.number, climbs.longer) AS expected,
        dphh_free(purses.purse, expected, $reserve) AS purse
    FROM numbers
    INNER JOIN climbs ON numbers.user_id = climbs.user_id
    INNER JOIN purses ON numbers.user_id = purses.user_id
)

SELECT
    *,
    least(purse, $first) AS spent
FROM beside_reserve;

CREATE OR REPLACE TEMP TABLE undecided AS
WITH

-- isqrt(98/100 spent / t) to each of t grams, which is 0 if t is very large or the purse is empty;
-- 93/100 in runs that count what they find.
-- Grams of weight 0 stay in the table: which cell a gram is in must depend on nothing but its
-- noised weight and its class.
weighed AS (
    SELECT
        held.gram,
        held.key,
        held.class,
        dphh_isqrt(
            spending.spent * CASE WHEN $reserve[1] > 0 THEN 93 ELSE 98 END
            // (100 * spending.number)
        ) AS weight
    FROM held
    INNER JOIN spending ON held.user_id = spending.user_id
),

histogram AS (
    SELECT gram, key, class, CAST(sum(weight) AS BIGINT) AS weight, true AS is_held
    FROM weighed
    GROUP BY gram, key, class
),

-- Valid grams that no user holds, with weight 0. (An engine draws how many of them are in each cell
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
        weight + dphh_noise(key, $sigma, $purpose || '/round 1') AS first
    FROM sums
)

SELECT
    noised.gram,
    noised.key,
    noised.first,
    noised.is_held,
    CASE
        WHEN noised.class < 0 THEN -1 - CAST(noised.first >= $unlisted_threshold AS BIGINT)
        ELSE noised.class * $bin_count + coalesce(bins.bin, 0)
    END AS cell
FROM noised
ASOF LEFT JOIN bins ON noised.first >= bins.start;
