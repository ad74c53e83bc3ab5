-- Where this level's released grams stand: all that the next level needs to see.
-- In: candidates, released (key, gram). Out: positions (position, user_id, gram), in order.
CREATE TEMP TABLE positions AS
SELECT
    candidates.position,
    candidates.user_id,
    released.gram
FROM candidates
INNER JOIN released ON candidates.key = released.key
ORDER BY candidates.position;
