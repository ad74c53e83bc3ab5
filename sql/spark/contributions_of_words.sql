-- Level 1: each user's distinct words, $max_items at most, each weighed floor(2^b / sqrt(t)) where
-- the user is (udfs/kernel/contributions.py); the users of a block are one sum.
-- In: blocks (user_hashes, lengths, positions, words); the level's salt, told to
-- dphh_contributions_of_words: as an argument it would stand in Spark's plans, which its page and
-- its event log show. Out: contributions (key, weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_contributions_of_words(table(blocks), $max_items, $grid_bits);
