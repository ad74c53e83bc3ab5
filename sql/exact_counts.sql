-- How many users hold each key, exactly: for the owner's eyes, never for a release.
SELECT
    key,
    count(*) AS users
FROM held
GROUP BY key
HAVING count(*) >= $at_least
ORDER BY users DESC, key ASC;
