-- What rounds so far have told of each word that somebody held in the last: the sum of their noised
-- weights, each times its round's parts. Released or not, it stays on the executors.
-- In: noised (key, given, noisy) of the last round, written; told_before (key, told), of those
-- before.
-- Out: told_so_far (key, told).
CREATE TEMP VIEW told_so_far AS
SELECT
    noised.key,
    coalesce(told_before.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told
FROM noised
LEFT JOIN told_before ON noised.key = told_before.key;
