-- In runs that count what they find: adds how many of the released grams of a level each user
-- holds. For what a user holds, the user keeps a part of the purse.
-- In: numbered (block, user_hashes, lengths, grams), where released grams stand; purses. Out:
-- next_purses.
CREATE TEMP TABLE next_purses AS
SELECT
    numbered.block,
    dphh_finds(numbered.lengths, numbered.grams, purses.purse) AS purse
FROM numbered
INNER JOIN purses ON numbered.block = purses.block;
