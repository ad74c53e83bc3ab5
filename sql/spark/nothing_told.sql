-- Before the first of several rounds: nothing is told of any word.
CREATE TEMP VIEW told_before AS
SELECT
    CAST('' AS STRING) AS key,
    CAST(0 AS BIGINT) AS told
WHERE false;
