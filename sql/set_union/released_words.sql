-- The released words: those whose noised weight reaches the threshold. The order uses released
-- columns only, so it says nothing about the order of the data.
-- In: noised (word_id, noisy). Returns (key, noisy).
WITH

-- DPNE, Algorithm 5: if H[u] + N(0, sigma_1^2) > rho_1, then u goes to S_1. The threshold is the
-- least integer that passes.
passed AS (
    SELECT
        word_id,
        noisy
    FROM noised
    WHERE noisy >= $threshold
),

spelled AS (
    SELECT
        noisy,
        dphh_spelled(word_id) AS key
    FROM passed
)

SELECT
    key,
    noisy
FROM spelled
ORDER BY noisy DESC, key ASC;
