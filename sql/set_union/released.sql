-- What may leave: the keys whose noised weight reaches the threshold. Sorted by what is
-- released itself, so that the order says nothing of how the rows arrived.
SELECT
    key,
    noisy
FROM noised
WHERE noisy >= $threshold
ORDER BY noisy DESC, key ASC;
