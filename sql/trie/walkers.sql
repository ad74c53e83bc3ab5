-- All walkers, at the root, node 0. Users of the same sequence are one walker: a level needs only
-- the number of users.
-- In: chosen (user_id, tokens). Out: walkers (node, tokens, users).
CREATE TEMP TABLE walkers AS
SELECT
    tokens,
    CAST(0 AS BIGINT) AS node,
    count(*) AS users
FROM chosen
GROUP BY tokens;
