-- w of each word, a function of its earlier noised weights and of public numbers: largest for words
-- near the round's threshold. dphh_given_to_words looks it up.
-- In: told_before (code, told), for every word that any user held. Returns (code, w).
SELECT
    code,
    dphh_weight(
        told, CAST($parts AS BIGINT), CAST($deviation AS BIGINT), CAST($threshold AS BIGINT)
    ) AS w
FROM told_before;
