-- What a level of the forecast ladder releases: every valid gram whose noised weight in round 2
-- reaches the threshold of its row, held or not. In the order of keys, which does not say which is
-- which. A word that a list lacks is released by its spelling: its key says how many words there
-- are, and stays on the executors.
-- In: round_2, lifted, other_words; thresholds (class, bin, threshold), public.
-- Gives (bin, first, second, word, key). Of a word that a list lacks, bin says whether round 1
-- released it: 1, or 0.
WITH

held AS (
    SELECT
        round_2.key,
        round_2.bin,
        round_2.first,
        round_2.second
    FROM round_2
    INNER JOIN thresholds
        ON round_2.class = thresholds.class AND round_2.bin = thresholds.bin
    WHERE round_2.second >= thresholds.threshold
),

-- Of the keys that were drawn, those that nobody holds, numbered anew.
unheld AS (
    SELECT
        lifted.class,
        lifted.key,
        row_number() OVER (PARTITION BY lifted.class ORDER BY lifted.position) - 1 AS position
    FROM lifted
    LEFT ANTI JOIN round_2 ON lifted.key = round_2.key
),

spurious AS (
    SELECT
        unheld.key,
        lifted.bin,
        lifted.first,
        lifted.second
    FROM unheld
    INNER JOIN lifted ON unheld.class = lifted.class AND unheld.position = lifted.position
    WHERE lifted.bin IS NOT NULL
),

passed AS (
    SELECT
        key,
        bin,
        first,
        second
    FROM held
    UNION ALL
    SELECT
        key,
        bin,
        first,
        second
    FROM spurious
),

-- All of it goes to the driver. To sort it in several parts, Spark would have to look at it first.
spelled AS (
    SELECT /*+ repartition(1) */
        passed.key,
        passed.bin,
        passed.first,
        passed.second,
        other_words.word
    FROM passed
    LEFT JOIN other_words ON passed.key = other_words.key
)

SELECT
    spelled.bin,
    spelled.first,
    spelled.second,
    spelled.word,
    least(spelled.key, CASE WHEN $others >= 0 THEN $others END) AS key
FROM spelled
ORDER BY spelled.key;
