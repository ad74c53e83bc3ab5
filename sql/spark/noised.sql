-- One level of the ladder, as ../set_union_level.sql, from where each user was bounded and weighed
-- beside their own row (udfs/contributions.py) and the users of a batch were summed.
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
