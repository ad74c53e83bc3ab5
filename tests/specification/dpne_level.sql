-- DPNE, a level k >= 2 (Kim et al. 2021, Algorithm 1): the k-grams that many users share, among
-- those whose parts were released.
-- In: texts (user_id, tokens); released, with all levels below.
-- Out: new rows of released (level, tokens, noisy). S_k is the rows of level k; V_1 <- S_1 is the
-- rows of level 1 (set_union.sql); the output of Algorithm 1 is all rows of released.
INSERT INTO released
WITH

-- A released gram's number: its rank among the grams of its level, in lexicographic order.
numbered AS (
    SELECT
        level,
        tokens,
        row_number() OVER (PARTITION BY level ORDER BY tokens) - 1 AS number
    FROM released
),

-- V_k <- (S_1 x S_(k-1)) intersected with (S_(k-1) x S_1), as the beginnings and the endings of
-- valid grams. S_1 needs no lookup of its own: all words of a gram in S_(k-1) are in S_1.
-- A valid gram begins with a released gram of k - 1 tokens.
beginnings AS (
    SELECT tokens, number
    FROM numbered
    WHERE level = $level - 1
),

-- Its last k - 1 tokens are a released gram too.
endings AS (
    SELECT tokens, number
    FROM beginnings
),

-- W_i <- G_k(w_i), the k-grams in a user's text.
grams AS (
    SELECT texts.user_id, texts.tokens[starts.start:starts.start + $level - 1] AS gram
    FROM texts, unnest(range(1, len(texts.tokens) - $level + 2)) AS starts (start)
),

-- U_i <- W_i intersected with V_k. Keep valid grams, each once a user. A valid gram's key combines
-- the numbers of its beginning and its ending. DuckDB's [:-2] is all but the last token.
held AS (
    SELECT DISTINCT grams.user_id, grams.gram, (beginnings.number << 32) + endings.number AS key
    FROM grams
    INNER JOIN beginnings ON grams.gram[:-2] = beginnings.tokens
    INNER JOIN endings ON grams.gram[2:] = endings.tokens
),

placed AS (
    SELECT
        gram,
        key,
        user_id,
        least(count(*) OVER (PARTITION BY user_id), $max_items) AS size,
        dphh_place(CAST(key AS UBIGINT), user_id, $salt) AS place
    FROM held
),

-- If |U_i| > Delta_k, choose Delta_k of it. Bound each user to at most $max_items grams: the first
-- in a random order of the user's own.
bounded AS (
    SELECT gram, key, size
    FROM placed
    QUALIFY count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items
),

-- 1 / sqrt(|U_i|) to each of U_i: floor(2^b / sqrt(t)) to each of t grams.
weighed AS (
    SELECT gram, key, dphh_even_weight(size, $grid_bits) AS weight
    FROM bounded
),

-- H_k[u], summed over users.
histogram AS (
    SELECT gram, key, CAST(sum(weight) AS BIGINT) AS weight
    FROM weighed
    GROUP BY gram, key
),

-- H_k[u] + N(0, sigma_k^2). Materialised, so that the noise is drawn once.
noised AS MATERIALIZED (
    SELECT gram, weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
    FROM histogram
),

-- For u in V_k: H_k[u] <- 0. The rest of V_k, with weight 0: valid grams that no user holds, or
-- that no user kept.
absent AS (
    SELECT
        list_append(beginnings.tokens, endings.tokens[-1]) AS gram,
        (beginnings.number << 32) + endings.number AS key
    FROM beginnings
    INNER JOIN endings ON beginnings.tokens[2:] = endings.tokens[:-2]
    WHERE $noise
    EXCEPT
    SELECT gram, key
    FROM histogram
),

-- They are noised too; otherwise the release would disclose which grams are kept. Those that pass
-- are spurious grams. (An engine draws their number, which they are and their noise from the same
-- distribution, and stores only those: udfs/noise/absent.py. Without noise none can pass.)
noised_absent AS MATERIALIZED (
    SELECT gram, dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
    FROM absent
)

-- S_k: if H_k[u] + N(0, sigma_k^2) > rho_k. $threshold is the least integer that passes.
SELECT CAST($level AS INTEGER) AS level, gram AS tokens, noisy
FROM noised
WHERE noisy >= $threshold
UNION ALL
SELECT CAST($level AS INTEGER) AS level, gram AS tokens, noisy
FROM noised_absent
WHERE noisy >= $threshold;
