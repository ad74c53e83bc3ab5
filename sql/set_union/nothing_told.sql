-- Before the first of several rounds: nothing is told of any word.
CREATE TEMP TABLE told_before AS
SELECT
    CAST(0 AS BIGINT) AS code,
    CAST(0 AS BIGINT) AS told
WHERE false;
