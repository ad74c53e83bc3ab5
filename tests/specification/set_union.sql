-- One round of differentially private set union over items: DPSU with the weighted Gaussian policy
-- (Gopi et al. 2020; DPNE, Algorithm 5). Several rounds are DP-SIPS.
-- In: held_items (user_id, item), which is U_i; released, of earlier rounds.
-- Out: new rows of released (level, tokens, noisy), which is S_1 of Algorithm 1.
INSERT INTO released
WITH

placed AS (
    SELECT
        user_id,
        item,
        least(count(*) OVER (PARTITION BY user_id), $max_items) AS size,
        dphh_place(dphh_hash_of_spelling(item), user_id, $salt) AS place
    FROM held_items
),

-- If |U_i| > Delta_1, choose Delta_1 of it. Bound each user to at most $max_items items: the first
-- in a random order of the user's own. Items with equal hashes are kept or dropped together.
bounded AS (
    SELECT item, size
    FROM placed
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items
),

-- 1 / sqrt(|U_i|) to each of U_i: floor(2^b / sqrt(t)) to each of t items.
weighed AS (
    SELECT item, dphh_even_weight(size, $grid_bits) AS weight
    FROM bounded
),

-- H[u], summed over users.
histogram AS (
    SELECT item, CAST(sum(weight) AS BIGINT) AS weight
    FROM weighed
    GROUP BY item
),

-- H[u] + N(0, sigma_1^2). Materialised, so that the noise is drawn once. dphh_noise takes the item
-- as a name, which only tests use.
noised AS MATERIALIZED (
    SELECT item, weight + dphh_noise(item, $sigma, $purpose) AS noisy
    FROM histogram
)

-- S_1: if H[u] + N(0, sigma_1^2) > rho_1. $threshold is the least integer that passes.
SELECT 1 AS level, [item] AS tokens, noisy
FROM noised
WHERE noisy >= $threshold;
