-- All walkers, at the root, node 0. Users of the same sequence are one walker: a level needs only
-- the number of users. Equal contents of users of one row are tokenised once.
-- In: contents_of_users (user_id, contents); chosen (user_id, tokens), of users of several rows.
-- Out: walkers (node, tokens, users).
CREATE TEMP TABLE walkers AS
WITH

only_contents AS (
    SELECT try_element_at(contents, 1) AS content
    FROM contents_of_users
    WHERE array_size(contents) = 1
),

counted AS (
    SELECT content, count(*) AS users
    FROM only_contents
    GROUP BY content
),

of_one_row AS (
    SELECT not_empty(tokens_of(content)) AS tokens, users
    FROM counted
),

of_all AS (
    SELECT tokens, users
    FROM of_one_row
    WHERE array_size(tokens) > 0
    UNION ALL
    SELECT tokens, CAST(1 AS BIGINT) AS users
    FROM chosen
)

SELECT
    CAST(0 AS BIGINT) AS node,
    tokens,
    CAST(sum(users) AS BIGINT) AS users
FROM of_all
GROUP BY tokens;
