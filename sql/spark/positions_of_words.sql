-- Where valid grams of two words stand, as in ../positions_of_words.sql, within each block; a block
-- that is left with none goes.
-- In: blocks (lots, lengths, places, words). Out: next_positions (lots, lengths, keys, words);
-- words come in where pruning on a single side needs them.
CREATE TABLE next_positions AS
SELECT
    lots,
    lengths,
    keys,
    words
FROM dphh_places(table(blocks));
