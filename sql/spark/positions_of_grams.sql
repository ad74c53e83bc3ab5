-- Where the next level's valid grams stand, as in ../positions_of_grams.sql, within each block; a
-- user who is left with none goes.
-- In: unplaced (user_hashes, lengths, keys, words), and numbers where blocks_and_numbers.sql
-- made it. Out: next_positions (user_hashes, lengths, keys,
-- words).
CREATE TABLE next_positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_positions(table(unplaced));
