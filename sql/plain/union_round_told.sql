-- The sum of each item's noised weights so far, each times its round's parts. It is never shown.
-- In: noised (item, given, noisy); told (item, told), of earlier rounds.
-- Out: told, including this round.
CREATE OR REPLACE TEMP TABLE told AS
SELECT noised.item, coalesce(told.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told
FROM noised
LEFT JOIN told ON noised.item = told.item;
