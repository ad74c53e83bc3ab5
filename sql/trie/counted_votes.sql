-- The number of accepted votes for each prefix.
-- In: judged. Out: votes (node, token, ended, votes).
CREATE TEMP TABLE votes AS
SELECT
    node,
    token,
    ended,
    count(*) AS votes
FROM judged
WHERE verdict = 'accepted'
GROUP BY node, token, ended;
