-- What a round releases: items of positive weight whose noised weight reaches the threshold.
-- In: noised (item, given, noisy). Out: new rows of released (level, tokens, noisy).
INSERT INTO released
SELECT 1 AS level, [item] AS tokens, noisy
FROM noised
WHERE given AND noisy >= $threshold;
