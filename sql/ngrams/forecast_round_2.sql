-- Round 2 of a level of the forecast ladder (step 6 of docs/ngrams.md): every user shares out
-- their norm over the grams that they hold, in proportion to the weights of the grams' cells.
-- In, private: positions; round_1; absent; $g, the g of each gram (forecast_weights.sql).
-- Out, private: round_2 (key, cell, first, second), both noised weights of the valid grams that a
-- user holds; absent_counts (cell, grams, nonpositive), of those that no user holds.
CREATE TEMP TABLE round_2 AS
WITH

-- Each user adds floor(norm g / |g|_2) to each gram: an L2 norm of $norm at most for any g.
users_contributions AS (
    SELECT unnest(dphh_round_2_contributions(user_hashes, lengths, keys, $g, $norm)) AS contribution
    FROM positions
),

histogram AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
),

-- Every gram of round 1 gets noise, also those to which no user adds weight in round 2.
sums AS (
    SELECT
        round_1.key,
        round_1.name,
        round_1.cell,
        round_1.noisy AS first,
        coalesce(histogram.weight, 0) AS weight
    FROM round_1
    LEFT JOIN histogram ON round_1.key = histogram.key
)

SELECT key, cell, first, weight + dphh_noise(name, $sigma, $purpose || '/round 2') AS second
FROM sums;

CREATE TEMP TABLE absent_counts AS
SELECT
    cell,
    grams,
    dphh_absent_nonpositive(cell, grams, $sigma, $purpose) AS nonpositive
FROM absent;
