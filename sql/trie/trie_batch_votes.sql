-- TrieHH, one level as in the papers (Algorithms 1 and 2): $drawn_users of $users users, drawn
-- without replacement, vote for the prefix of $level tokens of their sequence if the prefix one
-- token shorter is in the trie. Users without a sequence are drawn alike, and do not vote.
-- In: one_sequence_each (user_id, tokens); trie (node, tokens), the prefixes of the level below.
-- Out: draws (user_id, draw), drawn once; votes (node, token, ended, votes).
CREATE TEMP TABLE draws AS
WITH

counted AS (
    SELECT count(*) AS holders
    FROM one_sequence_each
),

without_sequence AS (
    SELECT chr(31) || places.place AS name
    FROM range($users) AS places (place)
    INNER JOIN counted ON places.place < $users - counted.holders
),

everyone AS (
    SELECT user_id, user_id AS name
    FROM one_sequence_each
    UNION ALL
    SELECT NULL AS user_id, name
    FROM without_sequence
)

SELECT user_id, dphh_word(name, $purpose) AS draw
FROM everyone;

-- The $drawn_users users with the lowest draws are the drawn ones; of these, `voters` have a
-- sequence. No task sorts all users: they are counted by the first 16 bits of their draws, and
-- sorted only among those with the same bits, while fewer than $drawn_users have lower ones.
-- (Rounding may change the bits, but keeps their order.)
CREATE TEMP TABLE votes AS
WITH

led AS (
    SELECT user_id, draw, CAST(floor(draw / 281474976710656) AS INTEGER) AS bits
    FROM draws
),

counted AS (
    SELECT bits, count(*) AS users
    FROM led
    GROUP BY bits
),

filling AS (
    SELECT
        bits,
        sum(users) OVER (ORDER BY bits) - users AS users_before
    FROM counted
),

in_order AS (
    SELECT
        led.user_id,
        filling.users_before + row_number() OVER (PARTITION BY led.bits ORDER BY led.draw) AS place
    FROM led
    INNER JOIN filling ON led.bits = filling.bits
    WHERE filling.users_before < $drawn_users
),

voters AS (
    SELECT one_sequence_each.tokens
    FROM in_order
    INNER JOIN one_sequence_each ON in_order.user_id = one_sequence_each.user_id
    WHERE in_order.place <= $drawn_users
),

next_prefixes AS (
    SELECT
        trie.node,
        try_element_at(voters.tokens, $level) AS token,
        array_size(voters.tokens) < $level AS ended
    FROM voters
    INNER JOIN trie ON list_slice(voters.tokens, 1, $level - 1) = trie.tokens
)

SELECT node, token, ended, count(*) AS votes
FROM next_prefixes
GROUP BY node, token, ended;
