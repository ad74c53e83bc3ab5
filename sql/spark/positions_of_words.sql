-- Where valid grams of two words stand, as in ../positions_of_words.sql, within each block; a block
-- that is left with none goes.
-- In: unplaced (user_hashes, lengths, positions, words), and numbers where blocks_and_numbers.sql
-- made it. Out: next_positions (user_hashes, lengths, keys,
-- words); words come in where pruning on a single side needs them.
CREATE TABLE next_positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_positions(table(unplaced));
