-- Where this level's released grams stand: all that the next level needs to see. A text goes when
-- it is too short for the next level, or when it holds none of them.
-- In: candidates (user_id, keys, words). Out: next_positions (user_id, grams, words).
CREATE TABLE next_positions AS
WITH

placed AS (
    SELECT
        user_id,
        dphh_places(keys) AS grams,
        words
    FROM candidates
)

SELECT
    user_id,
    grams,
    words
FROM placed
WHERE size(grams) > 1 AND exists(grams, gram -> gram IS NOT NULL);
