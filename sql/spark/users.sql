-- Users with all their texts. Each text goes to its user before lists are made, so that these are
-- made once.
-- In: contents (user_id, content). Out: users (name, contents); the name's hash stands for the user
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
    dphh_name(user_id) AS name,
    collect_list(content) AS contents
FROM of_one_user
GROUP BY user_id;
