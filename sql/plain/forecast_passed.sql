-- The forecast ladder: what a level releases, by the threshold of each row (class and bin).
-- Thresholds depend on round 1's rows, and on how many grams of each row have a second noised
-- weight of at most 0 (the rule of signs, docs/forecast.md).
-- In: round_2; row_thresholds (class, bin, threshold), public. Out: new rows of released.
INSERT INTO released
WITH

passed AS (
    SELECT
        round_2.gram,
        round_2.second,
        round_2.somebodys
    FROM round_2
    INNER JOIN row_thresholds
        ON round_2.class = row_thresholds.class AND round_2.bin = row_thresholds.bin
    WHERE round_2.second >= row_thresholds.threshold
),

-- Valid grams that no user holds and that pass by noise alone. Nothing in a release marks them.
spurious AS (
    SELECT
        gram,
        second
    FROM passed
    WHERE NOT somebodys
)

SELECT
    CAST($level AS INTEGER) AS level,
    gram AS tokens,
    second AS noisy
FROM passed
WHERE somebodys
UNION ALL
SELECT
    CAST($level AS INTEGER) AS level,
    gram AS tokens,
    second AS noisy
FROM spurious;
