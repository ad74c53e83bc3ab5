-- What a level of the forecast ladder releases: every valid gram whose noised weight in round 2
-- reaches the threshold of its row, held or not. In the order of keys, which does not say which is
-- which.
-- In: round_2, absent_signs; thresholds (class, bin, threshold), public; $valid, the valid grams by
-- class, public; $grams, those that somebody holds.
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

-- Of a class, the rows of grams that nobody holds.
absent_rows AS (
    SELECT
        absent_signs.class,
        list(
            {
                'bin': absent_signs.bin,
                'grams': absent_signs.grams,
                'negatives': absent_signs.negatives,
                'threshold': thresholds.threshold
            } ORDER BY absent_signs.bin
        ) AS bins
    FROM absent_signs
    INNER JOIN thresholds
        ON absent_signs.class = thresholds.class AND absent_signs.bin = thresholds.bin
    GROUP BY absent_signs.class
),

-- Those of them that the noise lifts over their thresholds: their number, which they are, and their
-- noised weights, by the noise's own law.
spurious AS (
    SELECT
        unnest(
            dphh_spurious_grams_of_class(class, bins, $valid, $grams, $sigma, $purpose)
        ) AS gram
    FROM absent_rows
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
        gram.key,
        gram.bin,
        gram.first,
        gram.second
    FROM spurious
)

SELECT
    key,
    bin,
    first,
    second
FROM passed
ORDER BY key;
