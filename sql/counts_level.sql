-- How many users hold each of a list of public keys, and what bounding took from them: one Gaussian
-- vector, of which every coordinate is released, so nothing hangs on which keys anybody holds.
-- In: counted_users (user_id, keys); asked (key), all keys there are, octaves too. Out: noised (key,
-- noisy), drawn once: nothing reads the noise before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

-- Each whole user adds one user to each key held, or less where these are more than max_items; and
-- to the octave of their number what that took from each (udfs/given_grams.py). What the users of
-- a batch of rows add together stands in its first row.
contributions AS (
    SELECT unnest(dphh_counted(keys)) AS contribution
    FROM counted_users
),

sums AS (
    SELECT
        contribution.key AS key,
        CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY contribution.key
)

SELECT
    asked.key,
    coalesce(sums.weight, 0) + dphh_noise(CAST(asked.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM asked
LEFT JOIN sums ON asked.key = sums.key;
