-- How many users hold each of a list of public keys, and what bounding removed: a Gaussian vector.
-- Every coordinate is released, so the set of released keys does not depend on the data.
-- In: contributions (key, weight), where each user's vector has a bounded L2 norm; asked (key), all
-- keys and octaves. Out: noised (key, noisy), drawn once, because it is stored in a table first.
-- The noise is no function of the key: dphh_noise takes it as a name, by which tests draw alone.
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
