-- What rounds so far have told of each word that somebody held in the last: the sum of their noised
-- weights, each times its round's parts. Released or not, it stays in the engine.
-- In: noised (code, given, noisy) of the last round; told_before (code, told), of those before.
-- Out: told_so_far (code, told).
CREATE TEMP TABLE told_so_far AS
SELECT
    noised.code,
    coalesce(told_before.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told
FROM noised
LEFT JOIN told_before ON noised.code = told_before.code;
