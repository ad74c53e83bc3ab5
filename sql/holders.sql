-- How many keys each user holds.
-- In: held (user_id, key), distinct pairs. Out: holders (user_id, t).
CREATE TEMP TABLE holders AS
SELECT
    user_id,
    count(*) AS t
FROM held
GROUP BY user_id;
