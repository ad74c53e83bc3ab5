-- Level 1: the distinct words of all of a user's texts.
-- In: texts (user_id, tokens). Out: held (user_id, key).
CREATE TABLE held AS
WITH

words AS (
    SELECT
        user_id,
        explode(tokens) AS key
    FROM texts
)

SELECT DISTINCT
    user_id,
    key
FROM words;
