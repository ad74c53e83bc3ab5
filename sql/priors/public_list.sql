-- The words that occur at least `least` times in a public text, numbered from 0 in the order of
-- their bytes.
-- In: word_counts (word, occurs). Out: listed (gram, word, occurs).
CREATE OR REPLACE TEMP TABLE listed AS
SELECT
    row_number() OVER (ORDER BY word) - 1 AS gram,
    word,
    occurs
FROM word_counts
WHERE occurs >= $least;
