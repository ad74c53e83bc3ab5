-- How many users hold each of a list of public keys, and what bounding took: one Gaussian vector,
-- of which every coordinate is released, so nothing hangs on which keys anybody holds.
-- In: contributions (key, weight), a whole user within one L2 norm; asked (key), all there are,
-- octaves too. Out: noised (key, noisy), drawn once: nothing reads it before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

sums AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY key
)

SELECT
    asked.key,
    coalesce(sums.weight, 0) + dphh_noise(CAST(asked.key AS STRING), $sigma, $purpose) AS noisy
FROM asked
LEFT JOIN sums ON asked.key = sums.key;
