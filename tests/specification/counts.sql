-- How many users hold each of a list of public keys: one Gaussian vector, released in full.
-- In: texts (user_id, tokens, group_name); asked (key, tokens, group_name), public, one row an item
-- and group; caps (user_id, cap), of users who have a cap of their own on the square of their norm;
-- $groups, the declared groups. Rows of other groups belong to the group $other.
-- Out: counted (key, noisy). After the keys come the losses, which measure what bounding removed:
-- one for bounded users who add at least 0.7 of a user to each key, one for those who add less.
CREATE OR REPLACE TEMP TABLE counted AS
WITH

lengths AS (
    SELECT DISTINCT len(tokens) AS length
    FROM asked
),

-- The runs of tokens of each row. With $beginnings, only those at the start of the row, whose end
-- counts as a token, the empty one.
grams AS (
    SELECT
        texts.user_id,
        CASE WHEN list_contains($groups, texts.group_name) THEN texts.group_name ELSE $other END
            AS group_name,
        list_slice(
            CASE WHEN $beginnings THEN list_append(texts.tokens, '') ELSE texts.tokens END,
            starts.start,
            starts.start + lengths.length - 1
        ) AS tokens
    FROM
        texts,
        lengths,
        unnest(range(1, CASE WHEN $beginnings THEN 2 ELSE len(texts.tokens) + 1 END))
            AS starts (start)
),

-- A user holds each key once.
held AS (
    SELECT DISTINCT grams.user_id, asked.key
    FROM grams
    INNER JOIN asked
        ON grams.tokens = asked.tokens AND grams.group_name IS NOT DISTINCT FROM asked.group_name
),

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
        CASE WHEN 10 * weight >= 7 * one_user THEN $keys ELSE $keys + 1 END AS key,
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
