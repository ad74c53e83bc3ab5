-- In runs that count what they find: adds how many of the released grams of this level each user
-- holds.
-- In: positions (block, user_hashes, lengths, keys) of this level; purses; $released, its released
-- keys and their numbers. Out: next_purses.
CREATE TEMP TABLE next_purses AS
SELECT
    held.block,
    dphh_finds(
        held.lengths, dphh_numbers_of_grams(held.keys, $released), purses.purse
    ) AS purse
FROM positions AS held
INNER JOIN purses ON held.block = purses.block;
