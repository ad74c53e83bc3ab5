-- What may leave of a round: the words that somebody gave something to and whose noised weight
-- reaches the threshold. Sorted by what is released itself.
-- In: noised (key, given, noisy). Gives (key, noisy).
SELECT
    key,
    noisy
FROM noised
WHERE given AND noisy >= $threshold
ORDER BY noisy DESC, key ASC;
