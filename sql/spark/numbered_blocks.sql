-- Blocks of whole users, each with a number of its own, to bring its words' weights to it.
-- In: blocks (lots, lengths, places, words). Out: numbered_blocks (block, lots, ...), written once.
CREATE TABLE numbered_blocks AS
SELECT
    monotonically_increasing_id() AS block,
    lots,
    lengths,
    places,
    words
FROM blocks;
