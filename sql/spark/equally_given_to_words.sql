-- The first of several rounds: each user's distinct words, of which any $max_items count, weighed
-- floor(2^b / sqrt(t)) (udfs/kernel/contributions.py); all others with 0, since the next round asks
-- which words anybody holds. The users of a block are one sum.
-- In: blocks (user_hashes, lengths, positions, words); the level's salt, told to
-- dphh_equally_given_to_words as in contributions_of_words.sql. Out: contributions (key, weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_equally_given_to_words(table(blocks), $max_items, $grid_bits);
