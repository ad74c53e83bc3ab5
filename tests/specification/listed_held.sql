-- The forecast ladder, level 1 with a public list of words: the words that each user counts for,
-- each once. These are all listed words that the user holds, and at most $max_items others: the
-- first in a random order of the user's own. Words with equal hashes count together or not at all.
-- In: held_items (user_id, item); valid (gram, key, class), the list, public.
-- Out: held (user_id, gram, key, class); words outside the list have class -1.
CREATE OR REPLACE TEMP TABLE held AS
WITH

others AS (
    SELECT
        held_items.user_id,
        held_items.item,
        dphh_place(dphh_hash_of_spelling(held_items.item), held_items.user_id, $salt) AS place
    FROM held_items
    ANTI JOIN valid ON [held_items.item] = valid.gram
),

bounded AS (
    SELECT user_id, item
    FROM others
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items
)

SELECT held_items.user_id, valid.gram, valid.key, valid.class
FROM held_items
INNER JOIN valid ON [held_items.item] = valid.gram
UNION ALL
SELECT user_id, [item] AS gram, 'other ' || item AS key, -1 AS class
FROM bounded;
