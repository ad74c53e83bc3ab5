-- How many users hold each of a list of public keys: one Gaussian vector, released in full.
-- In: texts (user_id, tokens, group_name); asked (key, tokens, group_name), public, one row an item
-- and group; $groups, the declared groups. Rows of other groups belong to the group $other.
-- Out: counted (key, noisy). After the keys come the octaves, which measure what bounding removed:
-- one for users who hold K to 2K keys, where K = $max_items, one for 2K to 4K, and so on.
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

-- Bound each user, where one user is g = $one_user units. A user of m <= K keys adds g to each. A
-- user of more keys adds w to each, and e, which measures what bounding removed, to the user's
-- octave; w is the largest integer with m w^2 + e^2 <= K g^2.
sizes AS (
    SELECT DISTINCT number
    FROM numbers
),

squares AS (
    SELECT
        CAST($one_user AS BIGINT) AS one_user,
        CAST($one_user AS BIGINT) * $one_user * $max_items AS norm_square
),

choices AS (
    SELECT
        sizes.number,
        weights.range AS weight,
        squares.norm_square,
        (
            dphh_isqrt(squares.norm_square // 4) * (squares.one_user - weights.range)
            + squares.one_user - 1
        ) // squares.one_user AS octave_weight
    FROM sizes, squares, range($one_user + 1) AS weights
),

bounds AS (
    SELECT
        number,
        max(weight) AS weight,
        min_by(octave_weight, -weight) AS octave_weight
    FROM choices
    WHERE number * weight * weight + octave_weight * octave_weight <= norm_square
    GROUP BY number
),

contributions AS (
    SELECT held.key, bounds.weight
    FROM held
    INNER JOIN numbers ON held.user_id = numbers.user_id
    INNER JOIN bounds ON numbers.number = bounds.number
    UNION ALL
    SELECT
        $keys - 1 + len(
            list_filter(
                range($octaves), lambda octave: ($max_items << octave) < numbers.number
            )
        ) AS key,
        bounds.octave_weight AS weight
    FROM numbers
    INNER JOIN bounds ON numbers.number = bounds.number
    WHERE numbers.number > $max_items
),

sums AS (
    SELECT key, CAST(sum(weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY key
),

coordinates AS (
    SELECT range AS key
    FROM range($keys + $octaves)
)

SELECT
    coordinates.key,
    coalesce(sums.weight, 0)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN sums ON coordinates.key = sums.key;
