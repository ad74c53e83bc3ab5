-- For each word that any user held in the last round: the sum of its noised weights so far, each
-- times its round's parts. It stays in the engine, for released words too.
-- In: noised (key, given, noisy) of the last round; told_before (key, told), of those before.
-- Out: told_so_far (key, told).
CREATE TEMP TABLE told_so_far AS
SELECT noised.key, coalesce(told_before.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told
FROM noised
LEFT JOIN told_before ON noised.key = told_before.key;
