-- What each user holds at this level: the distinct candidates of all their texts.
-- In: candidates (user_id, keys, words). Out: held (user_id, key).
CREATE TABLE held AS
WITH

grams AS (
    SELECT
        user_id,
        explode(keys) AS key
    FROM candidates
)

SELECT DISTINCT
    user_id,
    key
FROM grams
WHERE key IS NOT NULL;
