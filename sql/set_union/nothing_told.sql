-- Before the first of several rounds: no word has a noised weight yet.
CREATE TEMP TABLE told_before AS
SELECT
    CAST(0 AS BIGINT) AS word_id,
    CAST(0 AS BIGINT) AS told
WHERE false;
