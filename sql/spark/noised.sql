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

-- A test's draws depend on the key. In a run they depend on nothing.
SELECT
    key,
    weight + dphh_noise(
        CASE WHEN $is_test THEN CAST(key AS STRING) END, $sigma, $purpose
    ) AS noisy
FROM histogram;
