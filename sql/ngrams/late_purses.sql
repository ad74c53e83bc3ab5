-- Before the late rounds (step 9 of docs/ngrams.md): the noised number of users by what is left of
-- their purses and by the highest level on which they held a valid gram. For this every user spends
-- $spending.first of the purse, or what is left of it.
-- In, private: purses. Out, private: next_purses. Out, public: user_counts (bin, noisy).
CREATE TEMP TABLE users_of_round AS
SELECT
    block,
    dphh_purse_counts(purses, tops, finds, $spending) AS made
FROM purses;

CREATE TEMP TABLE user_counts AS
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

sums AS (
    SELECT
        bins.bin,
        -1 - bins.bin AS key,
        coalesce(histogram.weight, 0) AS weight
    FROM range($user_bins) AS bins (bin)
    LEFT JOIN histogram ON -1 - bins.bin = histogram.key
)

SELECT
    bin,
    weight + dphh_noise(
        CASE WHEN $is_test THEN CAST(key AS VARCHAR) END, $sigma, $purpose || '/users'
    ) AS noisy
FROM sums;

CREATE TEMP TABLE next_purses AS
SELECT
    users_of_round.block,
    users_of_round.made.purses,
    users_of_round.made.tops,
    users_of_round.made.finds
FROM users_of_round;
