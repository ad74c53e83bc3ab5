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

-- A test's draws depend on the word. In a run they depend on nothing.
SELECT
    key,
    weight > 0 AS given,
    weight + dphh_noise(CASE WHEN $is_test THEN key END, $sigma, $purpose) AS noisy
FROM histogram;
