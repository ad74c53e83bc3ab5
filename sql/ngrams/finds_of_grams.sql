-- In runs that count what they find: adds how many of the released grams of this level each user
-- holds.
-- In: positions (block, user_hashes, lengths, keys) of this level; purses; $released, its released
-- keys and their numbers. Out: next_purses.
CREATE TEMP TABLE next_purses AS
SELECT
    held.block,
    purses.purses,
    purses.tops,
    dphh_finds(
        held.lengths, dphh_numbers_of_grams(held.keys, $released), purses.finds
    ) AS finds
FROM positions AS held
INNER JOIN purses ON held.block = purses.block;
