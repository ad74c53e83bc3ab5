-- Level 1 with a list of words, in round 1 (step 2 of docs/ngrams.md): the words that it lacks
-- and that somebody counts for. They are in no class of the list, but in class -1, in two rows: 1
-- of what round 1 releases, which has no weight in round 2, and 0 of all else.
-- In: noised (key, noisy), from $others on of such words. Out: more of round_1.
INSERT INTO round_1
SELECT
    key,
    noisy,
    -1 AS class,
    CAST(noisy >= $threshold AS BIGINT) AS bin
FROM noised
WHERE key >= $others;
