-- Blocks of whole users, each with a number of its own, to bring its words' weights to it.
-- In: blocks (user_hashes, lengths, positions, words). Out: numbered_blocks (block, user_hashes,
-- ...), written once.
CREATE TABLE numbered_blocks AS
SELECT
    monotonically_increasing_id() AS block,
    user_hashes,
    lengths,
    positions,
    words
FROM blocks;
