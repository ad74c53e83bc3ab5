-- What a round releases: what somebody gave something to, and whose noised weight reaches the
-- threshold.
-- In: noised (item, given, noisy). Out: more of released (level, tokens, noisy).
INSERT INTO released
SELECT
    1 AS level,
    [item] AS tokens,
    noisy
FROM noised
WHERE given AND noisy >= $threshold;
