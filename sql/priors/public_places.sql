-- The words that occur at least $least times in a public text, numbered from 0 in the order of
-- their bytes; and where they stand: neighbours in a text have places side by side. A word that is
-- not listed leaves a gap, and so does a text's end: no text has more than $longest words.
-- In: word_counts (word, occurs); rows_of_corpus (content). Out: listed (gram, word, occurs);
-- places (place, gram).
CREATE OR REPLACE TEMP TABLE listed AS
SELECT
    row_number() OVER (ORDER BY word) - 1 AS gram,
    word,
    occurs
FROM word_counts
WHERE occurs >= $least;

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
