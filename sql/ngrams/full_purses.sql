-- A full purse for every user: $purse, the squared norm, in units of the noise's grid, that a user
-- may add in all rounds that follow. Purses are private; no query shows anything of them without
-- noise.
-- In: users (block, user_hashes, lengths, ids, words). Out, private: purses (block, purses,
-- tops, finds): for each user, in the order of the block, what is left; the highest level above
-- 1 on which the user held a valid gram, 0 before there is one; and how many of the grams found
-- so far the user holds, in runs that count them.
CREATE TEMP TABLE purses AS
WITH

made AS (
    SELECT block, dphh_full_purses(user_hashes, $purse) AS purse
    FROM users
)

SELECT made.block, made.purse.purses, made.purse.tops, made.purse.finds
FROM made;
