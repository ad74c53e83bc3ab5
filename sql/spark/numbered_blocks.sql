-- Blocks of whole users, each with a name of its own, to bring its words' weights to it.
-- In: blocks (lots, lengths, places, words). Out: numbered_blocks (block, lots, ...), written once.
CREATE TABLE numbered_blocks AS
SELECT
    uuid() AS block,
    lots,
    lengths,
    places,
    words
FROM blocks;
