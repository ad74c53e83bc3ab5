-- How many users have each content as their only row, for one part in $parts of the users; users of
-- several rows are counted under NULL. Contents are grouped as stored, and tokenised once each
-- (walkers.sql). They must be text or bytes, where equal values are identical: otherwise a user
-- with an equal value that is stored differently could change what others hold.
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
