-- The released words of a round: those of positive weight whose noised weight reaches the
-- threshold. A word that no holder keeps is never released by noise alone, because thresholds allow
-- for only as many new items as a user keeps.
-- In: noised (key, has_weight, noisy). Returns (noisy, key).
SELECT noisy, dphh_spelled(key) AS key
FROM noised
WHERE has_weight AND noisy >= $threshold;
