-- After the first of several rounds: no round before it has told anything of a word.
-- In: noised. Out: told_before (key, told), empty.
CREATE TEMP TABLE told_before AS
SELECT key, CAST(0 AS BIGINT) AS told
FROM noised
WHERE false;
