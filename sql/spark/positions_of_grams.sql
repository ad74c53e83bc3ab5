-- Where the next level's valid grams stand, as in ../positions_of_grams.sql, within each block; a
-- user who is left with none goes.
-- In: positions (user_hashes, lengths, keys, words). Out: next_positions (user_hashes, lengths,
-- keys, words).
CREATE TABLE next_positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_positions(table(positions));
