-- DPNE above the first level: the same set union as words_level.sql, over the valid grams that
-- somebody holds and keeps. All others, held or not, have a weight of 0 and no row: the noise that
-- they would have got is drawn for them together (dphh/ladder/spurious.py).
-- In: positions (lots, lengths, keys, words), where valid grams stand. Out: noised (key, noisy),
-- drawn once.
CREATE TEMP TABLE noised AS
WITH

-- Of each whole user the distinct grams that count, $max_items at most, and floor(2^b / sqrt(t))
-- for each of the t that do (udfs/kernel/contributions.py). What the users of a batch of
-- rows add together stands in its first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_grams(
                lots, lengths, keys, $max_items, $grid_bits, CAST($salt AS UBIGINT)
            )
        ) AS contribution
    FROM positions
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
