-- Where the listed words stand: neighbours in a text have places side by side. A word that is not
-- listed leaves a gap, and so does a text's end: no text has more than $longest words.
-- In: rows_of_corpus (content), listed (gram, word). Out: places (place, gram).
CREATE OR REPLACE TEMP TABLE places AS
WITH

texts AS (
    SELECT
        row_number() OVER () AS number,
        not_empty(tokens_of(content)) AS tokens
    FROM rows_of_corpus
),

words AS (
    SELECT
        number,
        unnest(tokens) AS word,
        generate_subscripts(tokens, 1) AS place
    FROM texts
)

SELECT words.number * (CAST($longest AS BIGINT) + 2) + words.place AS place, listed.gram
FROM words
INNER JOIN listed ON words.word = listed.word;
