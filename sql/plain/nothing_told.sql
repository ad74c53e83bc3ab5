-- Before the first of several rounds whose weights depend on earlier ones: no item has a noised
-- weight yet. Out: told (item, told).
CREATE OR REPLACE TEMP TABLE told AS
SELECT
    CAST('' AS VARCHAR) AS item,
    CAST(0 AS BIGINT) AS told
WHERE false;
