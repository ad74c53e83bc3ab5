-- Level 1: the distinct words of all of a user's texts.
-- In: texts. Out: held (user_id, key).
CREATE TEMP TABLE held AS
WITH

words AS (
    SELECT
        user_id,
        unnest(tokens) AS key
    FROM texts
)

SELECT DISTINCT
    user_id,
    key
FROM words;
