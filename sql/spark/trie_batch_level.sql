-- TrieHH, one level as the papers have it (Algorithms 1 and 2): the $batch users of the lowest
-- draws vote for the next prefix of their sequence if the prefix before is in the trie.
-- No task sorts everybody: draws are counted by their 16 leading bits, and only those of the bits
-- where the batch fills up are put in order.
-- In: draws (tokens, draw); trie (node, tokens), the prefixes of the level below.
-- Out: votes (node, token, ended, votes).
CREATE TABLE votes AS
WITH

led AS (
    SELECT
        tokens,
        draw,
        CAST(floor(draw / 281474976710656) AS INT) AS bits
    FROM draws
),

counted AS (
    SELECT
        bits,
        count(*) AS users
    FROM led
    GROUP BY bits
),

filling AS (
    SELECT
        bits,
        sum(users) OVER (ORDER BY bits) - users AS users_before
    FROM counted
),

ordered AS (
    SELECT
        led.tokens,
        filling.users_before + row_number() OVER (PARTITION BY led.bits ORDER BY led.draw) AS place
    FROM led
    INNER JOIN filling ON led.bits = filling.bits
    WHERE filling.users_before < $batch
),

batch AS (
    SELECT tokens
    FROM ordered
    WHERE place <= $batch
),

next_prefixes AS (
    SELECT
        trie.node,
        try_element_at(batch.tokens, $level) AS token,
        size(batch.tokens) < $level AS ended
    FROM batch
    INNER JOIN trie ON slice(batch.tokens, 1, $level - 1) = trie.tokens
)

SELECT
    node,
    token,
    ended,
    count(*) AS votes
FROM next_prefixes
GROUP BY node, token, ended;
