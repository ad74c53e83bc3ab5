-- Level 1: the distinct words of all of a user's texts, for one part in $parts of the users.
-- In: texts. Out: added to held (user_id, key).
INSERT INTO held
WITH

words AS (
    SELECT
        user_id,
        unnest(tokens) AS key
    FROM texts
    WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
)

SELECT DISTINCT
    user_id,
    key
FROM words;
