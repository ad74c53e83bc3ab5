-- One round of differentially private set union over items: DPSU with the weighted Gaussian policy
-- (Gopi et al. 2020; DPNE, Algorithm 5). Several rounds are DP-SIPS.
-- In: texts (user_id, tokens), one row for each row of the corpus; released, of earlier rounds.
-- Out: new rows of released (level, tokens, noisy).
INSERT INTO released
WITH

items AS (
    SELECT
        user_id,
        unnest(tokens) AS item
    FROM texts
),

-- A user holds each item once. Items that an earlier round released are removed from all users.
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

-- Bound each user to at most $max_items items: the first in a random order of the user's own. Items
-- with equal hashes are kept or dropped together.
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

-- Materialised, so that the noise is drawn once.
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
