-- Level 1 with a list of words: all words outside the list, with keys from $others on.
-- In: listed (word, key), public; the words of the corpus, whose ids are 0 to $words_of_corpus - 1.
-- Out, private: other_words (word, key).
CREATE TEMP TABLE other_words AS
WITH

words AS (
    SELECT
        dphh_spelled(ids.id) AS word,
        $others + ids.id AS key
    FROM range($words_of_corpus) AS ids (id)
)

SELECT words.word, words.key
FROM words
ANTI JOIN listed ON words.word = listed.word;
