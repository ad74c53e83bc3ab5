-- The forecast ladder, level 1 with a public list of words: the words that each user counts for,
-- each once. All of the list, and of other words $max_items, the first in an order that is the
-- user's own. Where places are equal, all of them count, or none.
-- In: texts (user_id, tokens); listed (token, number, class), public.
-- Out: held (user_id, gram, key, class); class -1 of words that the list lacks. The key is what a
-- test's noise depends on.
CREATE OR REPLACE TEMP TABLE held AS
WITH

items AS (
    SELECT user_id, unnest(tokens) AS item
    FROM texts
),

words AS (
    SELECT DISTINCT items.user_id, items.item, listed.number, listed.class
    FROM items
    LEFT JOIN listed ON items.item = listed.token
),

placed AS (
    SELECT user_id, item, dphh_place(dphh_spelling(item), user_id, $salt) AS place
    FROM words
    WHERE number IS NULL
),

bounded AS (
    SELECT user_id, item
    FROM placed
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items
)

SELECT
    user_id,
    [item] AS gram,
    CAST(number AS VARCHAR) AS key,
    class
FROM words
WHERE number IS NOT NULL
UNION ALL
SELECT
    user_id,
    [item] AS gram,
    'other ' || item AS key,
    -1 AS class
FROM bounded;
