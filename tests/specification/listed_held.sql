-- The forecast ladder, level 1 with a public list of words: the words that each user counts for,
-- each once. These are all listed words that the user holds, and at most $max_items others: the
-- first in a random order of the user's own. Words with equal hashes count together or not at all.
-- In: held_items (user_id, item); valid (gram, key, class), the list, public.
-- Out: standing (user_id, gram, run), each word once, in a run of its own; valid, now also with the
-- words outside the list for which somebody counts, which have class -1.
CREATE OR REPLACE TEMP TABLE standing AS
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
),

counting AS (
    SELECT held_items.user_id, held_items.item
    FROM held_items
    INNER JOIN valid ON [held_items.item] = valid.gram
    UNION ALL
    SELECT user_id, item
    FROM bounded
)

SELECT user_id, [item] AS gram, row_number() OVER () AS run
FROM counting;

INSERT INTO valid
SELECT DISTINCT standing.gram, 'other ' || standing.gram[1] AS key, -1 AS class
FROM standing
ANTI JOIN valid ON standing.gram = valid.gram;
