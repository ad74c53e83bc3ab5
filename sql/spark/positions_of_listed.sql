-- Level 1 with a list of words, as in ../ngrams/positions_of_listed.sql, within each block. The
-- list is public and sent to the executors whole. The words that it lacks are private: each gets
-- its key on the executors, from $others on, and the keys come back to the blocks.
-- In: numbered_blocks (block, user_hashes, lengths, positions, words); the list, told to
-- dphh_other_words_of_blocks and dphh_keys_of_words, and the salt, told to dphh_keys_of_words as in
-- contributions_of_words.sql. Out, private: other_words (word, key); positions (user_hashes,
-- lengths, keys, words): a word's number in the list, the key of a word that the list lacks, -1
-- where the user does not count for the word: of such words $max_items count.
CREATE TEMP VIEW lists_of_blocks AS
SELECT
    block,
    words
FROM numbered_blocks;

CREATE TABLE words_of_blocks AS
SELECT
    block,
    number,
    word
FROM dphh_other_words_of_blocks(table(lists_of_blocks));

-- Written once, so every reader sees the same key of a word.
CREATE TABLE other_words AS
WITH

words AS (
    SELECT DISTINCT word
    FROM words_of_blocks
)

SELECT
    word,
    CAST($others AS BIGINT) + monotonically_increasing_id() AS key
FROM words;

CREATE TEMP VIEW keyed_blocks AS
WITH

keys_of_blocks AS (
    SELECT
        words_of_blocks.block,
        collect_list(struct(words_of_blocks.number, other_words.key)) AS other_keys
    FROM words_of_blocks
    INNER JOIN other_words ON words_of_blocks.word = other_words.word
    GROUP BY words_of_blocks.block
)

SELECT
    numbered_blocks.user_hashes,
    numbered_blocks.lengths,
    numbered_blocks.positions,
    numbered_blocks.words,
    keys_of_blocks.other_keys
FROM numbered_blocks
LEFT JOIN keys_of_blocks ON numbered_blocks.block = keys_of_blocks.block;

CREATE TABLE positions AS
SELECT
    user_hashes,
    lengths,
    keys,
    words
FROM dphh_keys_of_words(table(keyed_blocks), $others, $max_items);
