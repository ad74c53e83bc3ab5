-- The released words: those whose noised weight reaches the threshold, in no order: they are stored
-- sorted by their values (dphh/journal.py).
-- In: noised (key, noisy). Returns (noisy, key).
-- DPNE, Algorithm 5: if H[u] + N(0, sigma_1^2) > rho_1, then u goes to S_1. The threshold is the
-- least integer that passes.
SELECT noisy, dphh_spelled(key) AS key
FROM noised
WHERE noisy >= $threshold;
