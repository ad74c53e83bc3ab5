-- The released words, as in ../set_union/released_words.sql: those whose noised weight reaches the
-- threshold, the least integer that passes (DPNE, Algorithm 5: if H[u] + N(0, sigma_1^2) > rho_1,
-- then u goes to S_1). A word's key is its spelling. The order uses released columns only, so it
-- says nothing about the order of the data.
-- In: noised (key, noisy). Returns (key, noisy).
SELECT
    key,
    noisy
FROM noised
WHERE noisy >= $threshold
ORDER BY noisy DESC, key ASC;
