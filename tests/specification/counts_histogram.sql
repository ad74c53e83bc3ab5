-- How many users hold how many of a list of public keys. K, how many count in full, follows.
-- In: held (user_id, key).
-- Out: histogram (key, noisy), the bins: of 1 key, of 2, and so on, each up to 1.2 times as many as
-- the one before, and one more at least; the last up to $keys.
CREATE OR REPLACE TEMP TABLE histogram AS
WITH RECURSIVE

bins (key, top) AS (
    SELECT 0, 1
    UNION ALL
    SELECT key + 1, least(greatest(top + 1, top * 6 // 5), $keys)
    FROM bins
    WHERE top < $keys
),

numbers AS (
    SELECT user_id, count(*) AS number
    FROM held
    GROUP BY user_id
),

-- A user who holds some keys adds 1 to the first bin whose top is at least as many.
contributions AS (
    SELECT numbers.user_id, min(bins.key) AS key
    FROM numbers
    INNER JOIN bins ON numbers.number <= bins.top
    GROUP BY numbers.user_id
)

SELECT
    bins.key,
    count(contributions.user_id) + dphh_noise(CAST(bins.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM bins
LEFT JOIN contributions ON bins.key = contributions.key
GROUP BY bins.key;
