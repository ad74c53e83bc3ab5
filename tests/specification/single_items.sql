-- Optimal selection for users of one item (Desfontaines, Voss, Gipson & Mandayam 2022).
-- In: held_items (user_id, item). Out: new rows of released (level, tokens, noisy).
INSERT INTO released
WITH

placed AS (
    SELECT
        user_id,
        item,
        dphh_place(dphh_hash_of_spelling(item), user_id, $salt) AS place
    FROM held_items
),

-- Each user keeps one item: the first in a random order of the user's own; none if two are first.
kept AS (
    SELECT item
    FROM placed
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) = 1
),

counts AS (
    SELECT item, count(*) AS users
    FROM kept
    GROUP BY item
),

-- Materialised, so that the noise is drawn once. It is never above $reach.
noised AS MATERIALIZED (
    SELECT
        item,
        users + dphh_truncated_noise(item, $ratio, $reach, $edge, $purpose) AS noisy
    FROM counts
)

SELECT 1 AS level, [item] AS tokens, noisy
FROM noised
WHERE noisy > $reach;
