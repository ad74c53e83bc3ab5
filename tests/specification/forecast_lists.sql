-- The forecast ladder, round 1 (step 2 of docs/ngrams.md): a histogram of users by how many grams
-- they hold, in bins. It takes a fiftieth of a user's squared L2 norm; round 1's equal weights take
-- the rest.
-- In: held; $list_sizes, the lower end of each bin. Out: lists (bin, noisy).
CREATE OR REPLACE TEMP TABLE lists AS
WITH

numbers AS (
    SELECT user_id, count(*) AS number
    FROM held
    GROUP BY user_id
),

weighed AS (
    SELECT
        len(list_filter($list_sizes, lambda size: size <= number)) - 1 AS bin,
        dphh_isqrt(CAST($norm AS BIGINT) * $norm // 50) AS weight
    FROM numbers
),

histogram AS (
    SELECT bin, CAST(sum(weight) AS BIGINT) AS weight
    FROM weighed
    GROUP BY bin
),

-- Every bin is noised, also empty ones.
bins AS (
    SELECT range AS bin
    FROM range(len($list_sizes))
)

SELECT
    bins.bin,
    coalesce(histogram.weight, 0)
    + dphh_noise(CAST(-1 - bins.bin AS VARCHAR), $sigma, $purpose || '/list sizes') AS noisy
FROM bins
LEFT JOIN histogram ON bins.bin = histogram.bin;
