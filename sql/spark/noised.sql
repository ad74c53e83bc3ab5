-- One level of the ladder: the histogram and the noise of a level, where each user was bounded
-- and weighed within a block (udfs/kernel/contributions.py) and users of blocks were summed.
-- In: contributions (key, weight). Out: noised (key, noisy), drawn once.
CREATE TABLE noised AS
WITH

histogram AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY key
)

SELECT
    key,
    weight + dphh_noise(CAST(key AS STRING), $sigma, $purpose) AS noisy
FROM histogram;
