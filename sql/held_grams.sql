-- What each user holds at this level: the distinct candidates of all their texts.
-- In: candidates (position, user_id, key). Out: held (user_id, key).
CREATE TEMP TABLE held AS
SELECT DISTINCT
    user_id,
    key
FROM candidates;
