-- The contents of each user's rows, before they are tokenised. So equal contents of users of one
-- row, who need no choice among sequences, can be tokenised once. Contents are text, bytes or lists
-- of these, whose equal values are stored alike: a user with an equal value that is stored
-- differently could change what others hold.
-- In: rows_of_corpus (user_id, content). Out: contents_of_users (user_id, contents); and the
-- sequences of users of several rows, sequences_of_rows (user_id, tokens), a view.
CREATE TEMP TABLE contents_of_users AS
WITH

users AS (
    SELECT user_id, array_agg(content) AS contents
    FROM rows_of_corpus
    GROUP BY user_id
)

SELECT coalesce(user_id, error('dphh: NULL user')) AS user_id, contents
FROM users;

CREATE TEMP VIEW sequences_of_rows AS
WITH

rows_of_several AS (
    SELECT user_id, unnest(contents) AS content
    FROM contents_of_users
    WHERE array_size(contents) > 1
),

sequences AS (
    SELECT user_id, not_empty(tokens_of(content)) AS tokens
    FROM rows_of_several
)

SELECT user_id, tokens
FROM sequences
WHERE array_size(tokens) > 0;
