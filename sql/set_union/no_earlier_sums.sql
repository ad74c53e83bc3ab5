-- After the first of several rounds: there are no noised weights of earlier rounds yet.
-- In: noised. Out: earlier_sums (key, noisy_sum), empty.
CREATE TEMP TABLE earlier_sums AS
SELECT key, CAST(0 AS BIGINT) AS noisy_sum
FROM noised
WHERE false;
