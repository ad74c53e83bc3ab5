-- The corpus, tokenised once: some hundred thousand whole users at a time are one row, a block,
-- which nothing divides, so that whoever bounds a user has all of the user.
-- In: texts_of_users (name, content); how content becomes tokens, and the lengths of n-grams that
-- are taken for words, both told to dphh_blocks. Out: blocks (user_hashes, lengths, positions,
-- words), arrays of numbers as bytes (udfs/kernel/blocks.py): what stands for each user where the
-- keys that count are chosen, how many positions the user has, and which of the block's words
-- stands at each position.
CREATE TABLE blocks AS
SELECT
    user_hashes,
    lengths,
    positions,
    words
FROM dphh_blocks(table(texts_of_users));
