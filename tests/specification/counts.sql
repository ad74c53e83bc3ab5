-- How many users hold each of a list of public keys: one Gaussian vector, released in full.
-- In: held (user_id, key); caps (user_id, cap), of users who have a cap of their own on the square
-- of their norm; factors (key, factor), the public factor of each key.
-- Out: counted (key, noisy). After the keys come $losses losses, which measure what bounding
-- removed from users: of $groups groups, one for users of each group alone, one for all others.
CREATE OR REPLACE TEMP TABLE counted AS
WITH

numbers AS (
    SELECT
        held.user_id,
        sum(factors.factor * factors.factor) AS number,
        CASE
            WHEN min(held.key % $groups) = max(held.key % $groups) THEN min(held.key % $groups)
            ELSE $groups
        END AS loss_number
    FROM held
    INNER JOIN factors ON held.key = factors.key
    GROUP BY held.user_id
),

-- Bound each user, where one user is g = $one_user units: by the user's cap, or K g^2, where K =
-- $max_items. Let m be the sum of f^2 over the user's keys, f being a key's factor. A user adds f w
-- to each key, with w <= g, and e, which measures what bounding removed, to a loss; w is the
-- largest integer with m w^2 + e^2 <= cap.
bounded AS (
    SELECT
        numbers.user_id,
        numbers.number,
        numbers.loss_number,
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
        loss_number,
        one_user,
        max(weight) AS weight,
        min_by(loss, -weight) AS loss
    FROM choices
    WHERE number * weight * weight + loss * loss <= cap
    GROUP BY user_id, loss_number, one_user
),

contributions AS (
    SELECT held.key, factors.factor * bounds.weight AS weight
    FROM held
    INNER JOIN bounds ON held.user_id = bounds.user_id
    INNER JOIN factors ON held.key = factors.key
    UNION ALL
    SELECT $keys + loss_number AS key, loss AS weight
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
    FROM range($keys + $losses)
)

SELECT
    coordinates.key,
    coalesce(sums.weight, 0)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN sums ON coordinates.key = sums.key;
