-- The released words of a round: those of positive weight whose noised weight reaches the
-- threshold, in no order: they are stored sorted by their values (dphh/run.py). A word that no
-- holder keeps is never released by noise alone, because thresholds allow for only as many new
-- items as a user keeps.
-- In: noised (key, has_weight, noisy). Returns (noisy, key).
-- DPNE, Algorithm 5: if H[u] + N(0, sigma_1^2) > rho_1, then u goes to S_1. The threshold is the
-- least integer that passes.
SELECT noisy, dphh_spelled(key) AS key
FROM noised
WHERE has_weight AND noisy >= $threshold;
