-- Votes received from devices, each with a verdict. A device answers a round once: a vote that the
-- transport repeated counts once, and a ticket with different votes does not count.
-- In: received (run_id, level, node, token, ended, ticket); trie (node), as it was broadcast.
-- Out: judged (node, token, ended, verdict).
CREATE TEMP TABLE judged AS
WITH

read AS (
    SELECT
        try_cast(run_id AS VARCHAR) AS run_id,
        try_cast(level AS BIGINT) AS level,
        try_cast(node AS BIGINT) AS node,
        try_cast(token AS VARCHAR) AS token,
        try_cast(ended AS BOOLEAN) AS ended,
        try_cast(ticket AS VARCHAR) AS ticket
    FROM received
),

checked AS (
    SELECT
        read.*,
        CASE
            WHEN read.run_id IS NULL OR read.level IS NULL THEN 'malformed'
            WHEN read.run_id <> $run_id OR read.level <> $level THEN 'of another round'
            WHEN
                read.node IS NULL OR read.ended IS NULL OR read.ticket IS NULL
                OR read.ended <> (read.token IS NULL) OR read.token = ''
                THEN 'malformed'
            -- Empty sequences do not exist, so none ends at the root.
            WHEN trie.node IS NULL OR (read.ended AND read.level = 1) THEN 'out of range'
        END AS fault
    FROM read
    LEFT JOIN trie ON read.node = trie.node
),

of_tickets AS (
    SELECT
        node,
        token,
        ended,
        fault,
        ticket,
        row_number() OVER (PARTITION BY fault, ticket) AS copy,
        min((node, coalesce(token, ''))) OVER (PARTITION BY fault, ticket)
        = max((node, coalesce(token, ''))) OVER (PARTITION BY fault, ticket) AS alike
    FROM checked
)

SELECT
    node,
    token,
    ended,
    CASE
        WHEN fault IS NOT NULL THEN fault
        WHEN NOT alike THEN 'contradictory'
        WHEN copy > 1 THEN 'repeated'
        ELSE 'accepted'
    END AS verdict
FROM of_tickets;
