-- Differentially private set union over items, one round of it: DPSU by the weighted Gaussian
-- policy (Gopi et al. 2020; DPNE, Algorithm 5). Several rounds are DP-SIPS.
-- In: texts (user_id, tokens), one row a row of the corpus; released, of earlier rounds.
-- Out: more of released (level, tokens, noisy).
INSERT INTO released
WITH

items AS (
    SELECT
        user_id,
        unnest(tokens) AS item
    FROM texts
),

-- A user holds each item once. What an earlier round released is taken from everyone.
held AS (
    SELECT DISTINCT
        items.user_id,
        items.item
    FROM items
    ANTI JOIN released ON released.tokens = [items.item]
),

placed AS (
    SELECT
        user_id,
        item,
        least(count(*) OVER (PARTITION BY user_id), $max_items) AS number,
        dphh_place(dphh_spelling(item), user_id, $salt) AS place
    FROM held
),

-- Bound each user: at most $max_items items, the first in an order that is the user's own. Where
-- places are equal, all of them count, or none.
bounded AS (
    SELECT
        item,
        number
    FROM placed
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items
),

-- floor(2^b / sqrt(t)) to each of t items.
weighed AS (
    SELECT
        item,
        dphh_even_weight(number, $grid_bits) AS weight
    FROM bounded
),

histogram AS (
    SELECT
        item,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM weighed
    GROUP BY item
),

-- Drawn once: nothing reads the noise before all of it is there.
noised AS MATERIALIZED (
    SELECT
        item,
        weight + dphh_noise(item, $sigma, $purpose) AS noisy
    FROM histogram
)

SELECT
    1 AS level,
    [item] AS tokens,
    noisy
FROM noised
WHERE noisy >= $threshold;
