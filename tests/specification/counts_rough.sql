-- How many users hold each of a list of public keys, roughly. The factors of keys follow.
-- In: held (user_id, key). Out: rough (key, noisy).
CREATE OR REPLACE TEMP TABLE rough AS
WITH

numbers AS (
    SELECT user_id, count(*) AS number
    FROM held
    GROUP BY user_id
),

-- A user adds 2^$bits / sqrt(t), rounded down, to each of t keys: an L2 norm of 2^$bits at most.
contributions AS (
    SELECT held.key, dphh_isqrt(CAST(pow(4, $bits) AS BIGINT) // numbers.number) AS weight
    FROM held
    INNER JOIN numbers ON held.user_id = numbers.user_id
),

coordinates AS (
    SELECT range AS key
    FROM range($keys)
)

SELECT
    coordinates.key,
    CAST(coalesce(sum(contributions.weight), 0) AS BIGINT)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN contributions ON coordinates.key = contributions.key
GROUP BY coordinates.key;
