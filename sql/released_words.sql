-- The words that level 1 released, spelled out.
SELECT
    passed.key,
    vocabulary.token
FROM passed
INNER JOIN vocabulary ON passed.key = vocabulary.word;
