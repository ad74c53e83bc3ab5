-- DPNE, "Scaling up DPNE": valid grams that no user keeps (nobody holds them, or only users with
-- more than Delta_k, who kept others) and whose noise alone reaches rho_k.
-- Their number is Binomial(|V_k| - |supp(H_k)|, P[noise >= rho_k]); their noised weights are the
-- noise given that it reaches rho_k; candidate keys are drawn uniformly from V_k, more than are
-- needed: released_grams.sql drops those that a user keeps. V_k is never written down.
-- In: noised (key, noisy), of the valid grams that a user keeps; $valid, by which V_k is found;
-- $threshold, rho_k (dphh/mechanisms/ngrams/dpne.py).
-- Out: spurious (position, key, noisy), drawn once: position from 0, noisy NULL where keys are left
-- over.
CREATE TEMP TABLE spurious AS
WITH

supported AS (
    SELECT count(*) AS kept
    FROM noised
),

drawn AS (
    SELECT unnest(dphh_spurious(kept, $valid, $sigma, $threshold, $purpose)) AS gram
    FROM supported
)

SELECT gram.position, gram.key, gram.noisy
FROM drawn;
