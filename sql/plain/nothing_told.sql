-- Before the first of several rounds whose weights follow one another: nothing is told of any item.
-- Out: told (item, told).
CREATE OR REPLACE TEMP TABLE told AS
SELECT
    CAST('' AS VARCHAR) AS item,
    CAST(0 AS BIGINT) AS told
WHERE false;
