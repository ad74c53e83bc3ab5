-- For each word that any user held in the last round: the sum of its noised weights so far, each
-- times its round's precision (udfs/rules/weights.py). All sums stay in the engine.
-- In: noised (key, has_weight, noisy) of the last round; earlier_sums (key, noisy_sum), of the
-- rounds before it.
-- Out: sums_so_far (key, noisy_sum).
CREATE TEMP TABLE sums_so_far AS
SELECT
    noised.key,
    coalesce(earlier_sums.noisy_sum, 0) + CAST($precision AS BIGINT) * noised.noisy AS noisy_sum
FROM noised
LEFT JOIN earlier_sums ON noised.key = earlier_sums.key;
