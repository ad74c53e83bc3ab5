-- All texts with their words as values of an enumeration, so that n-grams are compared as integers:
-- for the owner of the data, never for a release.
-- In: rows_of_corpus (user_id, content). Out: exact_texts (user_id, words).
CREATE TEMP TYPE word_of_corpus AS ENUM ( -- noqa: PRS
    SELECT DISTINCT token
    FROM (SELECT unnest(tokens_of(content)) AS token FROM rows_of_corpus)
    WHERE token <> ''
);

CREATE TEMP TABLE exact_texts AS
SELECT
    user_id,
    CAST(list_filter(tokens_of(content), lambda token: token <> '') AS word_of_corpus[]) AS words
FROM rows_of_corpus;
