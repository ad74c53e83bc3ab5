-- The forecast ladder, step 7 of docs/ngrams.md: what a level releases, by the threshold of each
-- row (class and bin). Thresholds depend on round 1's rows, and on how many grams of each row have
-- a second noised weight of at most 0 (the rule of signs, docs/ngrams.md). Valid grams that no
-- user holds and that pass by noise alone are among what is released; nothing marks them.
-- In: round_2; row_thresholds (class, bin, threshold), public. Out: new rows of released.
INSERT INTO released
SELECT CAST($level AS INTEGER) AS level, round_2.gram AS tokens, round_2.second AS noisy
FROM round_2
INNER JOIN row_thresholds
    ON round_2.class = row_thresholds.class AND round_2.bin = row_thresholds.bin
WHERE round_2.second >= row_thresholds.threshold;
