-- What may leave of a round: the words that somebody gave something to and whose noised weight
-- reaches the threshold. A word that a user holds but does not keep never leaves by noise alone:
-- thresholds are made for as many new items as a user keeps. Sorted by what is released itself.
-- In: noised (code, given, noisy). Gives (key, noisy).
WITH

passed AS (
    SELECT
        code,
        noisy
    FROM noised
    WHERE given AND noisy >= $threshold
),

spelled AS (
    SELECT
        noisy,
        dphh_spelled(code) AS key
    FROM passed
)

SELECT
    key,
    noisy
FROM spelled
ORDER BY noisy DESC, key ASC;
