-- How many users hold a content as their only row, for one part in $parts of the users; who holds
-- several rows is counted under NULL. Contents are counted as they are written, and made into
-- tokens once each (walkers.sql): as text or bytes, where what is equal is the same, since who
-- holds a value that is equal and written apart must not change what others hold.
-- In: rows_of_corpus (user_id, content). Out: added to contents (content, users).
INSERT INTO contents
WITH

users AS (
    SELECT
        user_id,
        any_value(content) AS content,
        count(*) AS held
    FROM rows_of_corpus
    WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
    GROUP BY user_id
),

contents_of_users AS (
    SELECT CASE WHEN held = 1 THEN content END AS content
    FROM users
)

SELECT
    content,
    count(*) AS users
FROM contents_of_users
GROUP BY content;
