-- Where this level's released grams stand: all that the next level needs to see. A gram that cannot
-- be half of a longer one goes, and a user who is left with none.
-- In: positions (lots, lengths, grams, words). Out: next_positions (lots, lengths, grams, words).
CREATE TABLE next_positions AS
SELECT
    lots,
    lengths,
    grams,
    words
FROM dphh_places(table(positions));
