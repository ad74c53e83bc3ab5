-- Every word of the corpus and its rank. The ranks are private: they count words that nobody may
-- learn of, and stay inside the run. In: texts. Out: vocabulary (token, word).
CREATE TEMP TABLE vocabulary AS
SELECT
    token,
    CAST(row_number() OVER (ORDER BY token) - 1 AS INTEGER) AS word
FROM (SELECT DISTINCT unnest(tokens) AS token FROM texts) AS distinct_tokens;
