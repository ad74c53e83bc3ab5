-- How many users hold each key, exactly: for the owner's eyes, never for a release.
-- In: users (lot, codes).
WITH

held AS (
    SELECT unnest(list_distinct(codes)) AS code
    FROM users
),

counts AS (
    SELECT
        code,
        count(*) AS users
    FROM held
    WHERE code >= 0
    GROUP BY code
    HAVING count(*) >= $at_least
)

SELECT
    users,
    dphh_spelled(code) AS key
FROM counts
ORDER BY users DESC, key ASC;
