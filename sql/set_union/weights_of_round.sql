-- w of each word, by what earlier rounds told of it and by public numbers: most to what stands near
-- the round's threshold. It is handed to dphh_given_to_words, which looks it up.
-- In: told_before (code, told), of every word that anybody held. Gives (code, w).
SELECT
    code,
    dphh_weight(
        told, CAST($parts AS BIGINT), CAST($deviation AS BIGINT), CAST($threshold AS BIGINT)
    ) AS w
FROM told_before;
