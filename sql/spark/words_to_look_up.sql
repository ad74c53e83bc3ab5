-- The distinct words of each block, each with its place in the block's list, to be looked up among
-- the released ones by a join.
-- In: unplaced (user_hashes, lengths, positions, words). Out: keys_to_look_up (block, place, key).
CREATE TEMP VIEW named_words AS
SELECT
    words,
    xxhash64(user_hashes) AS block
FROM unplaced;

CREATE TEMP VIEW keys_to_look_up AS
SELECT
    block,
    place,
    key
FROM dphh_words_of_blocks(table(named_words));
