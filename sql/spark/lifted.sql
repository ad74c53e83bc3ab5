-- DPNE, "Scaling up DPNE": valid grams that no user keeps and that the noise alone lifts to rho_k
-- (as sql/ngrams/lifted.sql). How many grams are kept stays on the executors.
-- In: noised (key, noisy); the valid grams, public, told to dphh_lifted. Out: lifted (position,
-- key, noisy), drawn once.
CREATE TABLE lifted AS
WITH

supported AS (
    SELECT count(*) AS kept
    FROM noised
),

drawn AS (
    SELECT dphh_lifted(kept, $sigma, $threshold, $purpose) AS lifted
    FROM supported
)

SELECT
    lifted_rows.position,
    lifted_rows.key,
    lifted_rows.noisy
FROM drawn
    LATERAL VIEW
    inline(drawn.lifted) lifted_rows AS position, key, noisy;
