-- TrieHH, one level (Algorithm 2): a sampled user whose sequence begins with a prefix of the trie
-- votes for the prefix one token longer. The end of a sequence is a token of its own kind, `ended`.
-- In: walkers (node, tokens, users): the sequences whose first $level - 1 tokens are in the trie,
-- at their nodes. Out: votes (node, token, ended, votes), drawn once.
CREATE TEMP TABLE votes AS
WITH

next_prefixes AS (
    SELECT
        node,
        try_element_at(tokens, $level) AS token,
        array_size(tokens) < $level AS ended,
        users
    FROM walkers
),

eligible AS (
    SELECT node, token, ended, CAST(sum(users) AS BIGINT) AS users
    FROM next_prefixes
    GROUP BY node, token, ended
)

-- A new coin for each eligible user at this level; heads are votes. One draw gives how many users
-- with the same next prefix toss heads. It is 0 if there are fewer than $theta of them, and $theta
-- if there are so many that fewer votes have a probability below 2^-500 (udfs/rules/votes.py).
SELECT
    node,
    token,
    ended,
    dphh_votes(
        node || chr(31) || ended || chr(31) || coalesce(token, ''),
        users,
        CAST($numerator AS DECIMAL(20, 0)),
        $theta,
        $purpose
    ) AS votes
FROM eligible;
