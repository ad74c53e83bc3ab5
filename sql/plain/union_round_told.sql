-- What rounds so far tell of each item: the sum of noised weights, each times its round's parts.
-- It is never shown.
-- In: noised (item, given, noisy); told (item, told), of the rounds before. Out: told, this one in
-- it.
CREATE OR REPLACE TEMP TABLE told AS
SELECT
    noised.item,
    coalesce(told.told, 0) + CAST($parts AS BIGINT) * noised.noisy AS told
FROM noised
LEFT JOIN told ON noised.item = told.item;
