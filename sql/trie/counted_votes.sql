-- The number of valid votes for each prefix.
-- In: judged. Out: votes (node, token, ended, votes).
CREATE TEMP TABLE votes AS
SELECT
    node,
    token,
    ended,
    count(*) AS votes
FROM judged
WHERE verdict = 'counted'
GROUP BY node, token, ended;
