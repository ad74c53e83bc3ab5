-- What a level of DPNE releases: every valid gram, held or not, whose noised weight reaches rho_k
-- (Algorithm 1: if H_k[u] + N(0, sigma_k^2) > rho_k, then u goes to S_k; $threshold is the least
-- integer that passes). Sorted by what is released itself, which does not say which is which.
-- In: noised (key, noisy), of the valid grams that somebody holds; lifted (position, key, noisy).
WITH

-- Of the keys that were proposed, those that nobody holds, numbered anew.
unheld AS (
    SELECT
        lifted.key,
        row_number() OVER (ORDER BY lifted.position) - 1 AS position
    FROM lifted
    ANTI JOIN noised ON lifted.key = noised.key
),

spurious AS (
    SELECT
        unheld.key,
        lifted.noisy
    FROM unheld
    INNER JOIN lifted ON unheld.position = lifted.position
    WHERE lifted.noisy IS NOT NULL
),

passed AS (
    SELECT
        key,
        noisy
    FROM noised
    WHERE noisy >= $threshold
    UNION ALL
    SELECT
        key,
        noisy
    FROM spurious
)

SELECT
    key,
    noisy
FROM passed
ORDER BY noisy DESC, key ASC;
