-- DPNE above the first level: the same set union as words_level.sql, over the valid grams that
-- somebody holds. A gram is valid where its pieces were released: its first k - 1 tokens, and its
-- last k - 1 (pruning on both sides: a released gram one place ahead) or its last one (on a single
-- side: a released word k - 1 places ahead).
-- In: positions (lot, grams, words), where the level below stands. Out: noised (key, noisy), drawn
-- once; key = left * 2^32 + right, by the numbers of the pieces among the released.
CREATE TEMP TABLE noised AS
WITH

candidates AS (
    SELECT
        lot,
        dphh_pairs(grams, coalesce(words, grams), $ahead) AS keys
    FROM positions
),

-- Of each whole user the distinct grams that count, $max_items at most, and floor(2^b / sqrt(t))
-- for each of the t that do (udfs/contributions.py).
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_grams(lot, keys, $max_items, $grid_bits, CAST($salt AS UBIGINT))
        ) AS contribution
    FROM candidates
),

histogram AS (
    SELECT
        contribution.key,
        CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

SELECT
    key,
    weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
FROM histogram;
