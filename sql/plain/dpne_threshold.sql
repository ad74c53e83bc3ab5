-- DPNE, rho_k: the least weight that noise alone reaches so rarely that no more than a share
-- $spurious of |S_(k-1)| grams is expected to be spurious. (Here by a float's tail of the normal
-- distribution; a run takes the noise's own, exactly.)
-- In: released, of all levels below. Gives (threshold).
WITH

below AS (
    SELECT tokens
    FROM released
    WHERE level = $level - 1
),

-- |V_k|: a valid gram is two of them that overlap; or, on a single side, one and any word.
ends AS (
    SELECT
        CASE $pruning WHEN 'both' THEN tokens[2:] ELSE [] END AS overlap,
        count(*) AS grams
    FROM below
    GROUP BY ALL
),

begins AS (
    SELECT
        CASE $pruning WHEN 'both' THEN tokens[:-2] ELSE [] END AS overlap,
        count(*) AS grams
    FROM released
    WHERE level = CASE $pruning WHEN 'both' THEN $level - 1 ELSE 1 END
    GROUP BY ALL
),

valid AS (
    SELECT sum(ends.grams * begins.grams) AS grams
    FROM ends
    INNER JOIN begins ON ends.overlap = begins.overlap
)

SELECT
    dphh_noise_quantile(
        $sigma, $spurious * coalesce(least(1, (SELECT count(*) FROM below) / valid.grams), 1)
    ) AS threshold
FROM valid
