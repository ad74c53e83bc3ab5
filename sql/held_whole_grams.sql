-- The distinct grams of one length that each user holds, no matter what was released.
-- In: grams. Out: added to held (user_id, key).
INSERT INTO held
SELECT DISTINCT
    user_id,
    gram AS key
FROM grams
WHERE gram IS NOT NULL;
