-- Where valid grams of two words stand, as in ../ngrams/positions_of_words.sql, within each block:
-- words' numbers among the released, and the pairs of them, in one step. A block that is left with
-- none goes.
-- In: unplaced (user_hashes, lengths, positions, words), and numbers where blocks_and_numbers.sql
-- made it; else the released words are told to dphh_pairs_of_words. Out: next_positions
-- (user_hashes, lengths, keys, words); words come in where pruning is on a single side ($single),
-- which needs them.
CREATE TABLE next_positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_pairs_of_words(table(unplaced), $single);
