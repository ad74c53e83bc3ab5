-- A later round: each user's distinct words, of which the $max_items of the largest w count,
-- weighed floor(2^b w / |w|) (udfs/kernel/contributions.py); all others with 0. The users of a
-- block are one sum.
-- In: blocks_and_weights (block, place, w, user_hashes, lengths, positions, words); the level's
-- salt, told to dphh_given_to_words as in contributions_of_words.sql. Out: contributions (key,
-- weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_given_to_words(table(blocks_and_weights), $max_items, $grid_bits);
