-- What a level of the forecast ladder releases (step 7 of docs/ngrams.md): every valid gram
-- whose noised weight in the later round reaches the threshold of its cell, held or not. They
-- are stored sorted by their values (dphh/run.py), so the order does not say which are held.
-- A word outside the list is released by its spelling, without its key, which would tell how
-- many words there are.
-- In: later_round, spurious, unlisted_words; thresholds (cell, threshold), public.
WITH

held AS (
    SELECT later_round.key, later_round.cell, later_round.first, later_round.second
    FROM later_round
    INNER JOIN thresholds ON later_round.cell = thresholds.cell
    WHERE later_round.second >= thresholds.threshold
),

-- The candidate keys that no user holds, numbered anew.
unheld AS (
    SELECT
        spurious.class,
        spurious.key,
        row_number() OVER (PARTITION BY spurious.class ORDER BY spurious.position) - 1 AS position
    FROM spurious
    ANTI JOIN later_round ON spurious.key = later_round.key
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
