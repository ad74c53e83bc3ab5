-- Level 1 with a list of words: for which of their words users count, in both rounds. Each user
-- counts for all listed ones, and for at most $max_items others, by a hash of word, user and salt.
-- In: users (block, user_hashes, lengths, ids, words); $keys, the key of each word.
-- Out: positions (block, user_hashes, lengths, keys): the key of a listed word is its number in the
-- list, that of another word $first_unlisted_key or more; -1 where the user does not count.
CREATE TEMP TABLE positions AS
SELECT
    block,
    user_hashes,
    lengths,
    dphh_keys_of_words(
        user_hashes, lengths, ids, words, $keys, $first_unlisted_key, $max_items, $salt
    ) AS keys
FROM users;
