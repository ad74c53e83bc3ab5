-- The released keys: those whose noised weight reaches the threshold, the least integer that passes
-- (DPNE, Algorithm 1: if H_k[u] + N(0, sigma_k^2) > rho_k, then u goes to S_k). The order uses
-- released columns only, so it says nothing about the order of the data.
SELECT
    key,
    noisy
FROM noised
WHERE noisy >= $threshold
ORDER BY noisy DESC, key ASC;
