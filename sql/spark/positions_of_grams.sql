-- Where the next level's valid grams stand, as in ../positions_of_grams.sql, within each block; a
-- user who is left with none goes.
-- In: positions (lots, lengths, keys, words). Out: next_positions (lots, lengths, keys, words).
CREATE TABLE next_positions AS
SELECT
    lots,
    lengths,
    keys,
    words
FROM dphh_places(table(positions));
