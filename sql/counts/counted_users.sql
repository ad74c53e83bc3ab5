-- Which of the given items each user holds, found in the texts that were gathered: a user's keys,
-- one for each item and each group of texts in which the user holds the item.
-- In: users (block, user_hashes, lengths, ids, words); $given, the items.
-- Out: counted_users (block, lengths, ids, caps), in each block the users in the order of `users`:
-- how many keys each has, and the keys. No user has a cap of their own: caps is NULL, a list's.
CREATE TEMP TABLE counted_users AS
WITH

holding AS (
    SELECT block, dphh_keys_of_items(lengths, ids, words, $given) AS held
    FROM users
)

SELECT
    holding.block,
    holding.held.lengths,
    holding.held.ids,
    nullif(holding.held.lengths, holding.held.lengths) AS caps
FROM holding;
