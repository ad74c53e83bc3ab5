-- One level as devices answer it: every user tosses a coin, and on heads votes for the next prefix
-- if the sequence's first tokens are in the trie. trie_level.sql draws the counts of such votes.
-- In: one_each (user_id, tokens); trie (node, tokens), as it was broadcast.
-- Out: cast_votes (node, token, ended, ticket).
CREATE TEMP TABLE cast_votes AS
WITH

coins AS MATERIALIZED (
    SELECT
        tokens,
        user_id AS name,
        dphh_word(user_id, $purpose) AS coin
    FROM one_each
),

next_prefixes AS (
    SELECT
        trie.node,
        coins.name,
        coins.tokens[$level] AS token,
        len(coins.tokens) < $level AS ended
    FROM coins
    INNER JOIN trie ON list_slice(coins.tokens, 1, $level - 1) = trie.tokens
    WHERE coins.coin < CAST($numerator AS UBIGINT)
)

SELECT
    node,
    token,
    ended,
    printf(
        '%016x%016x',
        dphh_word(name, 'ticket of ' || $purpose),
        dphh_word(name, 'ticket of ' || $purpose || ', second half')
    ) AS ticket
FROM next_prefixes;
