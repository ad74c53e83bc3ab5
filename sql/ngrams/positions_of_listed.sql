-- Level 1 with a list of words: which words users count for. All that the list has, and of others
-- $max_items, the first in an order that is the user's own. The same in both rounds.
-- In: users (user_hashes, lengths, ids, words); $keys, the key of each word.
-- Out: positions (user_hashes, lengths, keys): a word's number in the list, $others and more of
-- words that it lacks, -1 of what does not count.
CREATE TEMP TABLE positions AS
WITH

keyed AS (
    SELECT user_hashes, lengths, ids, words, $keys AS word_keys
    FROM users
)

SELECT
    user_hashes,
    lengths,
    dphh_keys_of_words(
        user_hashes, lengths, ids, words, word_keys, $others, $max_items, $salt
    ) AS keys
FROM keyed;
