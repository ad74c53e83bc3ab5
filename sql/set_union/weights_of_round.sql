-- The relative weight w of each word, by its earlier noised weights and public numbers: largest for
-- words near the round's threshold. It is brought to users, and words_of_round.sql reads it as $w.
-- In: earlier_sums (key, noisy_sum), for every word that any user held. Returns (key, value).
SELECT key, dphh_weight(noisy_sum, $total_precision, $deviation, $threshold) AS value
FROM earlier_sums;
