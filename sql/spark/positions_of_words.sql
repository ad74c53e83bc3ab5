-- Where the released words stand: the number of a word at its place, -1 where it was not released
-- and after each text. A word with none released beside it goes, and a user who is left with none.
-- In: blocks (lots, lengths, places, words). Out: next_positions (lots, lengths, grams, words);
-- words come in where pruning on a single side needs them.
CREATE TABLE next_positions AS
SELECT
    lots,
    lengths,
    grams,
    words
FROM dphh_places(table(blocks));
