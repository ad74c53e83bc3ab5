-- Texts, each with the name of its user: those of a user in one partition, one after the other.
-- In: contents (user_id, content). Out: texts_of_users (name, content); the name's hash stands for
-- the user where the keys that count are chosen.
CREATE TEMP VIEW texts_of_users AS
WITH

named AS (
    SELECT
        content,
        dphh_user_name(user_id) AS name
    FROM contents
)

SELECT
    name,
    content
FROM named
DISTRIBUTE BY name
SORT BY name;
