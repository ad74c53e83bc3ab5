-- All texts with their words as values of an enumeration, so that n-grams are compared as integers:
-- for the owner of the data, never for a release.
-- In: tokens_of_rows (user_id, tokens). Out: exact_texts (user_id, words).
CREATE TEMP TYPE word_of_corpus AS ENUM ( -- noqa: PRS
    SELECT DISTINCT token
    FROM (SELECT unnest(tokens) AS token FROM tokens_of_rows)
    WHERE token <> ''
);

CREATE TEMP TABLE exact_texts AS
SELECT
    user_id,
    CAST(list_filter(tokens, lambda token: token <> '') AS word_of_corpus[]) AS words
FROM tokens_of_rows;
