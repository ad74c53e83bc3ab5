-- Users with all their texts. Each text goes to its user before lists are made, so that these are
-- made once.
-- In: contents (user_id, content). Out: users (lot, contents); lot is what stands for the user
-- where the keys that count are chosen.
CREATE TEMP VIEW users AS
WITH

of_one_user AS (
    SELECT
        user_id,
        content
    FROM contents
    DISTRIBUTE BY user_id
)

SELECT
    collect_list(content) AS contents,
    CASE
        WHEN user_id IS NULL THEN raise_error('dphh: nobody')
        ELSE xxhash64(user_id)
    END AS lot
FROM of_one_user
GROUP BY user_id;
