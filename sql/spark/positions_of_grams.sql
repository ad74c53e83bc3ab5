-- Where the next level's valid grams stand, as in ../ngrams/positions_of_grams.sql, within each
-- block: a gram's number among the released, and the pairs of them, in one step. A user who is left
-- with none goes.
-- In: unplaced (user_hashes, lengths, keys, words), and numbers where blocks_and_numbers.sql made
-- it; else the released keys are told to dphh_pairs_of_grams. Out: next_positions (user_hashes,
-- lengths, keys, words).
CREATE TABLE next_positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_pairs_of_grams(table(unplaced), $ahead);
