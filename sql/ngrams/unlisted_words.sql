-- Level 1 with a list of words: all words outside the list, with keys from $first_unlisted_key on.
-- In: listed (word, key), public; the words of the corpus, whose ids are 0 to $words_of_corpus - 1.
-- Out, private: unlisted_words (word, key).
CREATE TEMP TABLE unlisted_words AS
WITH

words AS (
    SELECT
        dphh_spelled(ids.id) AS word,
        $first_unlisted_key + ids.id AS key
    FROM range($words_of_corpus) AS ids (id)
)

SELECT words.word, words.key
FROM words
ANTI JOIN listed ON words.word = listed.word;
