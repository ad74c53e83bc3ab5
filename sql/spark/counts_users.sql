-- Users with all their texts, and the group of each: what is not declared, NULL too, is $others.
-- In: contents (user_id, content, group_name); declared_groups (group_name, number).
-- Out: users (contents, groups).
CREATE TEMP VIEW users AS
WITH

texts AS (
    SELECT
        contents.user_id,
        contents.content,
        CAST(coalesce(declared_groups.number, $others) AS BIGINT) AS number
    FROM contents
    LEFT JOIN declared_groups ON contents.group_name = declared_groups.group_name
),

texts_of_users AS (
    SELECT
        user_id,
        collect_list(struct(content, number)) AS texts
    FROM texts
    GROUP BY user_id
)

SELECT
    texts_of_users.texts.content AS contents,
    CASE
        WHEN texts_of_users.user_id IS NULL THEN raise_error('dphh: NULL user')
        ELSE texts_of_users.texts.number
    END AS groups
FROM texts_of_users;
