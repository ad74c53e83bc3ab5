-- The items of each user, each once. DP-SIPS, and other methods of several rounds: items that an
-- earlier round released are removed from all users.
-- In: texts (user_id, tokens), one row for each row of the corpus; released, of earlier rounds.
-- Out: held_items (user_id, item).
CREATE OR REPLACE TEMP TABLE held_items AS
WITH

items AS (
    SELECT user_id, unnest(tokens) AS item
    FROM texts
)

SELECT DISTINCT items.user_id, items.item
FROM items
ANTI JOIN released ON released.tokens = [items.item];
