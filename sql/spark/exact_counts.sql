-- How many users hold each key, exactly: for the owner's eyes, never for a release. Each user adds
-- 1 to every key.
-- In: contributions (key, weight).
SELECT
    key,
    CAST(sum(weight) AS BIGINT) AS users
FROM contributions
GROUP BY key
HAVING sum(weight) >= $at_least
ORDER BY users DESC, key ASC;
