-- What a level of the forecast ladder releases (step 7 of docs/ngrams.md): every valid gram whose
-- noised weight in round 2 reaches the threshold of its cell, held or not. They are stored sorted
-- by their values (dphh/journal.py), so the order does not say which are held. A word outside the
-- list is released by its spelling, without its key, which would tell how many words there are.
-- In: round_2, spurious, unlisted_words; thresholds (cell, threshold), public.
WITH

held AS (
    SELECT round_2.key, round_2.cell, round_2.first, round_2.second
    FROM round_2
    INNER JOIN thresholds ON round_2.cell = thresholds.cell
    WHERE round_2.second >= thresholds.threshold
),

-- The candidate keys that no user holds, numbered anew.
unheld AS (
    SELECT
        spurious.class,
        spurious.key,
        row_number() OVER (PARTITION BY spurious.class ORDER BY spurious.position) - 1 AS position
    FROM spurious
    ANTI JOIN round_2 ON spurious.key = round_2.key
),

absent AS (
    SELECT unheld.key, spurious.cell, spurious.first, spurious.second
    FROM unheld
    INNER JOIN spurious ON unheld.class = spurious.class AND unheld.position = spurious.position
    WHERE spurious.cell IS NOT NULL
),

passed AS (
    SELECT key, cell, first, second
    FROM held
    UNION ALL
    SELECT key, cell, first, second
    FROM absent
)

SELECT
    unlisted_words.word,
    passed.cell,
    passed.first,
    passed.second,
    CASE WHEN unlisted_words.word IS NULL THEN passed.key END AS key
FROM passed
LEFT JOIN unlisted_words ON passed.key = unlisted_words.key;
