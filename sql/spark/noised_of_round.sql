-- The histogram and the noise of one of several rounds: of every word that anybody holds, also
-- where nobody keeps it or gives it anything, since the next round's weights follow from noised
-- weights.
-- In: contributions (key, weight). Out: noised (key, given, noisy), drawn once.
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
    weight > 0 AS given,
    weight + dphh_noise(key, $sigma, $purpose) AS noisy
FROM histogram;
