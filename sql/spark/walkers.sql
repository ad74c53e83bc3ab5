-- All start at the root, node 0. Who holds the same sequence walks together.
-- In: one_each (user_id, tokens). Out: walkers (node, tokens, users).
CREATE TABLE walkers AS
SELECT
    CAST(0 AS BIGINT) AS node,
    tokens,
    count(*) AS users
FROM one_each
GROUP BY tokens;
