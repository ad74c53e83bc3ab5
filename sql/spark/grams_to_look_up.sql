-- The distinct grams of each block, each with its place among them, to be looked up among the
-- released ones by a join.
-- In: unplaced (user_hashes, lengths, keys, words). Out: keys_to_look_up (block, place, key).
CREATE TEMP VIEW named_grams AS
SELECT
    user_hashes,
    lengths,
    keys,
    xxhash64(user_hashes) AS block
FROM unplaced;

CREATE TEMP VIEW keys_to_look_up AS
SELECT
    block,
    place,
    key
FROM dphh_grams_of_blocks(table(named_grams));
