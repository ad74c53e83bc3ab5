-- What each user holds at this level: the distinct candidates of all their texts, for one part in
-- $parts of the users. In: candidates (position, user_id, key). Out: added to held (user_id, key).
INSERT INTO held
SELECT DISTINCT
    user_id,
    key
FROM candidates
WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT);
