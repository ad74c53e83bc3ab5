-- The numbers of users that a round of the forecast ladder shows (steps 2 and 9 of
-- docs/ngrams.md): each of $user_bins bins of users, by list size and by purse, gets noise, also
-- those into which no user falls.
-- In, private: round_1_sums (key, weight); a bin's key is -1 - bin. Out, public: user_counts (bin,
-- noisy).
CREATE TEMP TABLE user_counts AS
WITH

sums AS (
    SELECT
        bins.bin,
        -1 - bins.bin AS key,
        coalesce(round_1_sums.weight, 0) AS weight
    FROM range($user_bins) AS bins (bin)
    LEFT JOIN round_1_sums ON -1 - bins.bin = round_1_sums.key
)

SELECT
    bin,
    weight + dphh_noise(
        CASE WHEN $is_test THEN CAST(key AS VARCHAR) END, $sigma, $purpose || '/users'
    ) AS noisy
FROM sums;
