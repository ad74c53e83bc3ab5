-- The forecast ladder, round 2 and the late round (steps 6 and 9 of docs/ngrams.md): users share
-- out a part of the purse over the grams that they hold, in proportion to the weights of the grams'
-- cells.
-- In: standing; purses; undecided (gram, key, cell, first, is_held), with every valid gram that any
-- user holds, even if its weight was 0; row_weights (cell, weight), public: computed from the
-- rounds before and earlier releases (steps 3 to 5); $parts, public, in units of 2^-15: which part
-- of a purse, by how many levels further up a user can climb. Before a late round, all that was
-- released is out of `undecided`, and users can climb to the highest level on which they held a
-- valid gram; it has no round 1 before it.
-- $reserve is what round 1 did not spend of, and $later_reserve what this round does not, which
-- follows from the noised numbers of users of round 1.
-- Out: later_round (gram, key, cell, first, second, is_held); purses, after the round.
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
        least(max(length), len($parts)) - 1 AS climb,
        sum(list_sum(list_transform(range(length), lambda place: least(place, len($parts) - 1))))
            AS longer
    FROM runs
    GROUP BY user_id
),

grams AS (
    SELECT DISTINCT user_id, gram
    FROM standing
),

-- A gram's weight depends on its cell alone, not on who holds it.
squares AS (
    SELECT
        grams.user_id,
        count(*) AS number,
        count(*) FILTER (WHERE row_weights.weight > 0) AS undecided,
        CAST(coalesce(sum(row_weights.weight * row_weights.weight), 0) AS BIGINT) AS square
    FROM grams
    LEFT JOIN undecided ON grams.gram = undecided.gram
    LEFT JOIN row_weights ON undecided.cell = row_weights.cell
    GROUP BY grams.user_id
),

-- Round 1 was before this. A late round has none, and nothing is further up.
holders AS (
    SELECT
        squares.*,
        purses.finds,
        greatest(purses.top, $level) AS top,
        CASE WHEN $is_late THEN greatest(purses.top - $level, 0) ELSE climbs.climb END AS climb,
        CASE WHEN $is_late THEN 0 ELSE climbs.longer END AS further,
        dphh_expected(purses.finds, squares.number, climbs.longer) AS expected_before,
        purses.purse - least(dphh_free(purses.purse, expected_before, $reserve), $first) AS purse
    FROM squares
    INNER JOIN climbs ON squares.user_id = climbs.user_id
    INNER JOIN purses ON squares.user_id = purses.user_id
),

free AS (
    SELECT
        *,
        dphh_free(purse, dphh_expected(finds, undecided, further), $later_reserve) AS purse_beside
    FROM holders
),

allotted AS (
    SELECT
        *,
        CASE WHEN square = 0 THEN 0 ELSE purse_beside * $parts[climb + 1] // 32768 END AS share
    FROM free
)

-- Who has little to say, a sum of squares below $saturation, spends that much less.
SELECT
    *,
    CASE
        WHEN $saturation = 0 THEN share
        ELSE share * least(square, $saturation) // $saturation
    END AS spent
FROM allotted;

CREATE OR REPLACE TEMP TABLE later_round AS
WITH

grams AS (
    SELECT DISTINCT user_id, gram
    FROM standing
),

-- floor(isqrt(spent) g / |g|), with |g| rounded up, so that the squares sum to at most `spent`.
shared_out AS (
    SELECT
        undecided.gram,
        dphh_isqrt(spending.spent) * row_weights.weight
        // greatest(dphh_root_up(spending.square), 1) AS weight
    FROM grams
    INNER JOIN spending ON grams.user_id = spending.user_id
    INNER JOIN undecided ON grams.gram = undecided.gram
    INNER JOIN row_weights ON undecided.cell = row_weights.cell
),

histogram AS (
    SELECT gram, CAST(sum(weight) AS BIGINT) AS weight
    FROM shared_out
    GROUP BY gram
)

-- Every gram that is undecided is noised, also those of weight 0 here.
SELECT
    undecided.gram,
    undecided.key,
    undecided.cell,
    undecided.first,
    undecided.is_held,
    coalesce(histogram.weight, 0)
    + dphh_noise(undecided.key, $sigma, $purpose || '/later round') AS second
FROM undecided
LEFT JOIN histogram ON undecided.gram = histogram.gram;

CREATE OR REPLACE TEMP TABLE purses AS
SELECT
    purses.user_id,
    coalesce(spending.purse - spending.spent, purses.purse) AS purse,
    coalesce(spending.top, purses.top) AS top,
    purses.finds
FROM purses
LEFT JOIN spending ON purses.user_id = spending.user_id;
