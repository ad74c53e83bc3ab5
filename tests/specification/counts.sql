-- How many users hold each of a list of public keys: one Gaussian vector, released in full.
-- In: held (user_id, key); caps (user_id, cap), of users who have a cap of their own on the square
-- of their norm.
-- Out: counted (key, noisy). After the keys come the losses, which measure what bounding removed:
-- one for bounded users who add at least 0.95 of a user to each key, one for those who add at least
-- 0.7, one for all others. On a grid so coarse that no bounded user can, there is no such loss.
CREATE OR REPLACE TEMP TABLE counted AS
WITH

numbers AS (
    SELECT user_id, count(*) AS number
    FROM held
    GROUP BY user_id
),

-- Bound each user, where one user is g = $one_user units: by the user's cap, or K g^2, where K =
-- $max_items. A user adds w <= g to each of m keys, and e, which measures what bounding removed, to
-- a loss; w is the largest integer with m w^2 + e^2 <= cap.
bounded AS (
    SELECT
        numbers.user_id,
        numbers.number,
        CAST($one_user AS BIGINT) AS one_user,
        coalesce(caps.cap, CAST($one_user AS BIGINT) * $one_user * $max_items) AS cap
    FROM numbers
    LEFT JOIN caps ON numbers.user_id = caps.user_id
),

choices AS (
    SELECT
        bounded.*,
        weights.range AS weight,
        (
            dphh_isqrt(bounded.one_user * bounded.one_user * $max_items)
            * (bounded.one_user - weights.range)
            + bounded.one_user - 1
        ) // bounded.one_user AS loss
    FROM bounded, range($one_user + 1) AS weights
),

bounds AS (
    SELECT
        user_id,
        one_user,
        max(weight) AS weight,
        min_by(loss, -weight) AS loss
    FROM choices
    WHERE number * weight * weight + loss * loss <= cap
    GROUP BY user_id, one_user
),

contributions AS (
    SELECT held.key, bounds.weight
    FROM held
    INNER JOIN bounds ON held.user_id = bounds.user_id
    UNION ALL
    SELECT
        $keys
        + CAST(20 * weight < 19 * one_user AND (19 * one_user + 19) // 20 < one_user AS INTEGER)
        + CAST(10 * weight < 7 * one_user AND (7 * one_user + 9) // 10 < one_user AS INTEGER)
            AS key,
        loss AS weight
    FROM bounds
    WHERE weight < one_user
),

sums AS (
    SELECT key, CAST(sum(weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY key
),

coordinates AS (
    SELECT range AS key
    FROM range($keys + $classes)
)

SELECT
    coordinates.key,
    coalesce(sums.weight, 0)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN sums ON coordinates.key = sums.key;
