-- The forecast ladder, step 7 of docs/ngrams.md: what a round releases, by the threshold of each
-- cell. Thresholds depend on the cells that were seen, and on how many grams of each have a second
-- noised weight of at most 0 (the rule of signs, docs/ngrams.md). Valid grams that no user holds
-- and that pass by noise alone are among what is released; nothing marks them.
-- In: later_round; row_thresholds (cell, threshold), public. Out: new rows of released.
INSERT INTO released
SELECT CAST($level AS INTEGER) AS level, later_round.gram AS tokens, later_round.second AS noisy
FROM later_round
INNER JOIN row_thresholds ON later_round.cell = row_thresholds.cell
WHERE later_round.second >= row_thresholds.threshold;
