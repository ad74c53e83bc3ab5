-- w of each word, a function of its earlier noised weights and of public numbers: largest for words
-- near the round's threshold. words_of_round.sql looks it up as $w.
-- In: told_before (word_id, told), for every word that any user held. Returns (word_id, w).
SELECT
    word_id,
    dphh_weight(
        told, CAST($parts AS BIGINT), CAST($deviation AS BIGINT), CAST($threshold AS BIGINT)
    ) AS w
FROM told_before;
