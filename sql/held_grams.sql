-- What each user holds at this level: the distinct candidates of all their texts.
CREATE TEMP TABLE held AS
SELECT DISTINCT
    user_id,
    key
FROM candidates;
