-- How often each word stands in a public text. The same macros as for the corpus make the tokens.
-- In: rows_of_corpus (content). Out: word_counts (word, occurs).
CREATE OR REPLACE TEMP TABLE word_counts AS
WITH

texts AS (
    SELECT not_empty(tokens_of(content)) AS tokens
    FROM rows_of_corpus
),

words AS (
    SELECT unnest(tokens) AS word
    FROM texts
)

SELECT word, count(*) AS occurs
FROM words
GROUP BY word;
