-- The exact number of users of each n-gram of $length tokens: for the owner of the data, never for
-- a release.
-- In: exact_texts (user_id, words). Out: (tokens, users).
WITH

grams AS (
    SELECT
        user_id,
        unnest(list_transform(
            range(1, len(words) - $length + 2),
            lambda start: list_slice(words, start, start + $length - 1)
        )) AS gram
    FROM exact_texts
),

held AS (
    SELECT DISTINCT
        user_id,
        gram
    FROM grams
)

SELECT CAST(gram AS VARCHAR[]) AS tokens, count(*) AS users
FROM held
GROUP BY gram
ORDER BY users DESC, tokens ASC;
