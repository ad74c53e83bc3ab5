-- How often each word stands in a public text. The same macros as for the corpus make the tokens.
-- In: rows_of_corpus (content). Out: word_counts (word, occurs).
CREATE OR REPLACE TEMP TABLE word_counts AS
WITH

words AS (
    SELECT unnest(not_empty(tokens_of(content))) AS word
    FROM rows_of_corpus
)

SELECT word, count(*) AS occurs
FROM words
GROUP BY word;
