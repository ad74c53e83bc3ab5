-- The released words of a round: of positive weight, and of a noised weight that reaches the
-- threshold. A word that no holder keeps is never released by noise alone, because thresholds allow
-- for only as many new items as a user keeps. The order uses released columns only.
-- In: noised (word_id, given, noisy). Returns (key, noisy).
WITH

passed AS (
    SELECT
        word_id,
        noisy
    FROM noised
    WHERE given AND noisy >= $threshold
),

spelled AS (
    SELECT
        noisy,
        dphh_spelled(word_id) AS key
    FROM passed
)

SELECT
    key,
    noisy
FROM spelled
ORDER BY noisy DESC, key ASC;
