-- What a level of the forecast ladder releases (step 7 of docs/ngrams.md): every valid gram whose
-- noised weight in round 2 reaches the threshold of its row, held or not. They are stored sorted by
-- their values (dphh/journal.py), so the order does not say which are held. A word outside the list
-- is released by its spelling, without its key, which would tell how many words there are.
-- In: round_2, lifted, unlisted_words; thresholds (class, bin, threshold), public.
WITH

held AS (
    SELECT round_2.key, round_2.bin, round_2.first, round_2.second
    FROM round_2
    INNER JOIN thresholds
        ON round_2.class = thresholds.class AND round_2.bin = thresholds.bin
    WHERE round_2.second >= thresholds.threshold
),

-- The candidate keys that no user holds, numbered anew.
unheld AS (
    SELECT
        lifted.class,
        lifted.key,
        row_number() OVER (PARTITION BY lifted.class ORDER BY lifted.position) - 1 AS position
    FROM lifted
    ANTI JOIN round_2 ON lifted.key = round_2.key
),

spurious AS (
    SELECT unheld.key, lifted.bin, lifted.first, lifted.second
    FROM unheld
    INNER JOIN lifted ON unheld.class = lifted.class AND unheld.position = lifted.position
    WHERE lifted.bin IS NOT NULL
),

passed AS (
    SELECT key, bin, first, second
    FROM held
    UNION ALL
    SELECT key, bin, first, second
    FROM spurious
)

SELECT
    unlisted_words.word,
    passed.bin,
    passed.first,
    passed.second,
    CASE WHEN unlisted_words.word IS NULL THEN passed.key END AS key
FROM passed
LEFT JOIN unlisted_words ON passed.key = unlisted_words.key;
