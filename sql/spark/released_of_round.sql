-- What may leave of a round: the words that somebody gave something to and whose noised weight
-- reaches the threshold. Sorted by what is released itself.
-- In: noised (key, given, noisy). Gives (key, noisy).
WITH

-- All of it goes to the driver. To sort it in several parts, Spark would have to look at it first.
reached AS (
    SELECT /*+ repartition(1) */
        key,
        noisy
    FROM noised
    WHERE given AND noisy >= $threshold
)

SELECT
    key,
    noisy
FROM reached
ORDER BY noisy DESC, key ASC;
