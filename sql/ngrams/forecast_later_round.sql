-- Round 2 of a level of the forecast ladder, or its late round (steps 6 and 9 of
-- docs/ngrams.md): every user shares out a part of their purse over the grams that they hold, in
-- proportion to the weights of the grams' cells.
-- In, private: positions; purses (block, purse); undecided and absent, as the
-- round before left them; $g, the g of each gram (forecast_weights.sql). In, public: $spending,
-- which part.
-- Out, private: later_round (key, cell, first, second), the noised weights of the valid grams
-- that a user holds; absent_counts (cell, grams, nonpositive), of those that no user holds;
-- next_purses.

-- A user who spends s adds floor(isqrt(s) g / |g|_2) to each gram: squares that sum to s at most. A
-- block is a row of whole users; purses stand beside them, in the same order.
CREATE TEMP TABLE users_of_round AS
SELECT
    held.block,
    dphh_later_round_contributions(held.lengths, held.keys, purses.purse, $g, $spending) AS made
FROM positions AS held
INNER JOIN purses ON held.block = purses.block;

CREATE TEMP TABLE next_purses AS
SELECT users_of_round.block, users_of_round.made.purse
FROM users_of_round;

CREATE TEMP TABLE later_round AS
WITH

users_contributions AS (
    SELECT unnest(made.contributions) AS contribution
    FROM users_of_round
),

histogram AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
),

-- Every gram of round 1 gets noise, also those to which no user adds weight here.
sums AS (
    SELECT
        undecided.key,
        undecided.name,
        undecided.cell,
        undecided.first,
        coalesce(histogram.weight, 0) AS weight
    FROM undecided
    LEFT JOIN histogram ON undecided.key = histogram.key
)

SELECT
    key,
    name,
    cell,
    first,
    weight + dphh_noise(name, $sigma, $purpose || '/later round') AS second
FROM sums;

CREATE TEMP TABLE absent_counts AS
SELECT
    cell,
    grams,
    dphh_absent_nonpositive(cell, grams, $sigma, $purpose) AS nonpositive
FROM absent;
