-- A full purse for every user: $purse, the squared norm, in units of the noise's grid, that a user
-- may add in all rounds that follow. Purses are private; no query shows anything of them without
-- noise.
-- In: users (block, user_hashes, lengths, ids, words). Out, private: purses (block, purse),
-- where a purse has lists, in the order of the block's users: what each has left; the highest level
-- above 1 on which the user held a valid gram, 0 before there is one; and how many of the grams
-- found so far the user holds, in runs that count them.
CREATE TEMP TABLE purses AS
SELECT block, dphh_full_purses(user_hashes, $purse) AS purse
FROM users;
