-- DPNE, "Scaling up DPNE": valid grams that nobody holds and that the noise alone lifts to rho_k.
-- Their number is Binomial(|V_k| - |supp(H_k)|, P[noise >= rho_k]); their noised weights are the
-- noise given that it reaches rho_k; keys are proposed for them, uniformly from V_k, more than are
-- needed: released_grams.sql drops those that somebody holds. V_k is never written down.
-- In: noised (key, noisy), of the valid grams that somebody holds; $valid, by which V_k is found.
-- Out: lifted (position, key, noisy), drawn once: position from 0, noisy NULL where keys are left
-- over.
CREATE TEMP TABLE lifted AS
WITH

supported AS (
    SELECT count(*) AS held
    FROM noised
),

drawn AS (
    SELECT unnest(dphh_lifted(held, $valid, $sigma, $threshold, $purpose)) AS gram
    FROM supported
)

SELECT
    gram.position,
    gram.key,
    gram.noisy
FROM drawn;
