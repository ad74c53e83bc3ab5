-- All walkers start at the root, node 0. Users of the same sequence are one walker: a level needs
-- only the number of users.
-- In: contents (content, users), of users of one row; one_each (user_id, tokens), of the others.
-- Out: walkers (node, tokens, users).
CREATE TEMP TABLE walkers AS
WITH

of_one_row AS (
    SELECT
        list_filter(tokens_of(content), lambda token: token <> '') AS tokens,
        users
    FROM contents
    WHERE content IS NOT NULL
),

of_all AS (
    SELECT
        tokens,
        users
    FROM of_one_row
    WHERE len(tokens) > 0
    UNION ALL
    SELECT
        tokens,
        1 AS users
    FROM one_each
)

SELECT
    CAST(0 AS BIGINT) AS node,
    tokens,
    CAST(sum(users) AS BIGINT) AS users
FROM of_all
GROUP BY tokens;
