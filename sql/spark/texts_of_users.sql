-- Texts, each with the name of its user: those of a user in one partition, one after the other.
-- In: contents (user_id, content). Out: texts_of_users (name, content); the name's hash stands for
-- the user where the keys that count are chosen.
CREATE TEMP VIEW texts_of_users AS
SELECT
    user_id AS name,
    content
FROM contents
DISTRIBUTE BY name
SORT BY name;
