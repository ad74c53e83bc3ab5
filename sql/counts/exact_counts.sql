-- The exact number of users of each n-gram of $length tokens: for the owner of the data, never for
-- a release.
-- In: tokens_of_rows (user_id, tokens). Out: (tokens, users).
WITH

texts AS (
    SELECT user_id, list_filter(tokens, lambda token: token <> '') AS tokens
    FROM tokens_of_rows
),

held AS (
    SELECT DISTINCT
        texts.user_id,
        list_slice(texts.tokens, starts.start, starts.start + $length - 1) AS tokens
    FROM texts, unnest(range(1, len(texts.tokens) - $length + 2)) AS starts (start)
)

SELECT tokens, count(*) AS users
FROM held
GROUP BY tokens
ORDER BY users DESC, tokens ASC;
