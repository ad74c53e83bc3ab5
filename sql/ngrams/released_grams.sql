-- What a level of DPNE releases: every valid gram, kept or not, whose noised weight reaches rho_k
-- (Algorithm 1: if H_k[u] + N(0, sigma_k^2) > rho_k, then u goes to S_k; $threshold is the least
-- integer that passes; dphh/mechanisms/ngrams/dpne.py computes it from the level below). They are
-- stored sorted by their values (dphh/run.py), so the order does not say which are kept.
-- In: noised (key, noisy), of the valid grams that a user keeps; spurious (position, key, noisy).
WITH

-- The candidate keys that no user keeps, numbered anew.
unkept AS (
    SELECT
        spurious.key,
        row_number() OVER (ORDER BY spurious.position) - 1 AS position
    FROM spurious
    ANTI JOIN noised ON spurious.key = noised.key
),

passing AS (
    SELECT unkept.key, spurious.noisy
    FROM unkept
    INNER JOIN spurious ON unkept.position = spurious.position
    WHERE spurious.noisy IS NOT NULL
)

SELECT key, noisy
FROM noised
WHERE noisy >= $threshold
UNION ALL
SELECT key, noisy
FROM passing;
