-- What may leave: the keys whose noised weight reaches the threshold, the least integer that passes
-- (DPNE, Algorithm 1: if H_k[u] + N(0, sigma_k^2) > rho_k, then u goes to S_k). Sorted by what is
-- released itself, so that the order says nothing of how the rows arrived.
SELECT
    key,
    noisy
FROM noised
WHERE noisy >= $threshold
ORDER BY noisy DESC, key ASC;
