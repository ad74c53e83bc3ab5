-- Only for Spark: on DuckDB and Polars the words of the corpus have ids; here blocks have words.
-- Level 1 with a list of words: all words outside the list, with keys from $first_unlisted_key on.
-- In: users, blocks with their words; listed (word, key), public.
-- Out, private: unlisted_words (word, key), written once, so that every reader sees the same keys.
CREATE TABLE unlisted_words AS
WITH

words AS (
    SELECT DISTINCT explode(words) AS word
    FROM users
)

SELECT words.word, CAST($first_unlisted_key AS BIGINT) + monotonically_increasing_id() AS key
FROM words
LEFT ANTI JOIN listed ON words.word = listed.word;
