-- What may leave: every count, and every sum of what bounding took, as it was noised.
SELECT
    key,
    noisy
FROM noised
ORDER BY key;
