-- dphh in a DuckDB shell, without Python: what a run would cost and find, and what a saved release
-- holds. Load it with `.read shell.sql` or `duckdb -init shell.sql`, then `FROM dphh_help();`.
--
-- Nothing here draws noise, reads private rows or spends budget. Planning is in floating point, to
-- about eleven digits; the plan that counts is the one that `dphh ... --plan` prices. A release is
-- named by a table or view, or by its file: 'out/release.parquet'. The names of parameters are
-- those of the verbs. In these macros, `list_transform([x], lambda y: ...)[1]` gives x a name.
--
-- One file, though it is long: a shell loads one, and `.read` looks for a second one in the folder
-- that the shell was started in, not in this one's. Its parts, each under a heading: logarithms,
-- the normal distribution, the Gaussian mechanism, costs, weights and thresholds, `items` and
-- `ngrams`, numbers of votes, `trie`, `ldp_trie`, saved releases, help. `dphh.connect()` loads
-- the part on saved releases alone (`dphh.sql.looking`).
--
-- For sqlfluff, which takes the parameters of macros for types, and cannot read lambdas of two:
-- noqa: disable=CP05


-- Logarithms and bisections ----------------------------------------------------------------------

-- ln(1 + x) with all its digits where x is small (Kahan).
CREATE OR REPLACE TEMP MACRO dphh_log1p(x) AS
list_transform(
    [CAST(x AS DOUBLE)],
    lambda little: CASE
        WHEN 1 + little = 1 THEN little
        ELSE ln(1 + little) * little / ((1 + little) - 1)
    END
)[1];

-- e^x - 1, likewise.
CREATE OR REPLACE TEMP MACRO dphh_expm1(x) AS
list_transform(
    [CAST(x AS DOUBLE)],
    lambda little: CASE
        WHEN exp(little) = 1 THEN little
        WHEN little < -1 THEN exp(little) - 1
        ELSE (exp(little) - 1) * little / ln(exp(little))
    END
)[1];

-- Halves of 64, down to the last digit that matters: the steps of a bisection over powers of 2.
CREATE OR REPLACE TEMP MACRO dphh_halves() AS
list_transform(range(57), lambda k: pow(0.5, k - 5));

-- 0, and the powers of 2 from 2^44 down to 1: the steps of a bisection over whole numbers.
CREATE OR REPLACE TEMP MACRO dphh_whole_halves() AS
list_transform(range(46), lambda k: CAST(floor(pow(2, 45 - k)) AS BIGINT) % 35184372088832);


-- The normal distribution ------------------------------------------------------------------------

CREATE OR REPLACE TEMP MACRO dphh_normal_density(x) AS
exp(-(x) * (x) / 2) / sqrt(2 * pi());

-- The Mills ratio (1 - Phi(u)) / phi(u), to 1e-14 at every u above -38. It is the integral over
-- all s of u phi(s) / (s^2 + u^2), taken by the midpoint rule with step 1/2, plus what that rule
-- leaves out at the pole s = iu (Chiarella & Reichel 1968).
CREATE OR REPLACE TEMP MACRO dphh_mills(u) AS
list_transform(
    [CAST(u AS DOUBLE)],
    lambda v: v * list_sum(
        list_transform(
            range(18),
            lambda k: dphh_normal_density((k + 0.5) / 2) / (pow((k + 0.5) / 2, 2) + v * v)
        )
    ) + CASE
        WHEN v < -4 * pi() THEN sqrt(2 * pi()) * exp(v * v / 2)
        WHEN v < 4 * pi() THEN sqrt(2 * pi()) * exp(v * v / 2) / (1 + exp(4 * pi() * v))
        ELSE 0
    END
)[1];

-- P[N >= x], with all its digits however far out.
CREATE OR REPLACE TEMP MACRO dphh_normal_tail(x) AS
list_transform(
    [CAST(x AS DOUBLE)],
    lambda z: CASE
        WHEN z < 0 THEN 1 - dphh_normal_density(z) * dphh_mills(-z)
        ELSE dphh_normal_density(z) * dphh_mills(z)
    END
)[1];

CREATE OR REPLACE TEMP MACRO dphh_normal_cdf(x) AS
dphh_normal_tail(-(x));

-- ln P[N >= z], for z >= 0, where the probability itself may be too small for a float.
CREATE OR REPLACE TEMP MACRO dphh_log_normal_tail(z) AS
ln(dphh_mills(z)) - (z) * (z) / 2 - ln(2 * pi()) / 2;

-- The x with P[N >= x] = q. Newton's steps on ln P, which is concave: after the first they come
-- from above, and each doubles the digits.
CREATE OR REPLACE TEMP MACRO dphh_normal_tail_inverse(q) AS
list_transform(
    [{ 'q': least(CAST(q AS DOUBLE), 1 - q), 'side': CASE WHEN q > 0.5 THEN -1 ELSE 1 END }],
    lambda wanted: wanted.side * list_reduce(
        list_resize([sqrt(-2 * ln(wanted.q))], 10, 0),
        (lambda z, step: z + dphh_mills(z) * (dphh_log_normal_tail(z) - ln(wanted.q)))  -- noqa: PRS
    )
)[1];


-- The Gaussian mechanism -------------------------------------------------------------------------

-- The mean of 1 - u M(u) over x <= u <= x + h: what the Mills ratio falls by, over h. By
-- Gauss and Legendre's rule of five points.
CREATE OR REPLACE TEMP MACRO dphh_mills_slope(x, h) AS
list_sum(
    list_transform(
        [
            { 'node': 0.5, 'share': 64 / 225 },
            { 'node': 0.5 - sqrt(5 - 2 * sqrt(10 / 7)) / 6, 'share': (322 + 13 * sqrt(70)) / 1800 },
            { 'node': 0.5 + sqrt(5 - 2 * sqrt(10 / 7)) / 6, 'share': (322 + 13 * sqrt(70)) / 1800 },
            { 'node': 0.5 - sqrt(5 + 2 * sqrt(10 / 7)) / 6, 'share': (322 - 13 * sqrt(70)) / 1800 },
            { 'node': 0.5 + sqrt(5 + 2 * sqrt(10 / 7)) / 6, 'share': (322 - 13 * sqrt(70)) / 1800 }
        ],
        lambda point: point.share * (
            1 - (x + h * point.node) * dphh_mills(x + h * point.node)
        )
    )
);

-- The smallest delta of noise N(0, sigma^2) at sensitivity 1 (Balle & Wang 2018, Theorem 8), for
-- epsilon >= 0. With h = 1/sigma, x = epsilon sigma - h/2 and the Mills ratio M, it is
-- phi(x) (M(x) - M(x + h)); where h is small, the difference is integrated.
CREATE OR REPLACE TEMP MACRO dphh_gaussian_delta(epsilon, sigma) AS
list_transform(
    [{ 'x': epsilon * sigma - 0.5 / sigma, 'h': CAST(1.0 / sigma AS DOUBLE) }],
    lambda curve: CASE
        WHEN curve.h < 0.25
            THEN dphh_normal_density(curve.x) * curve.h * dphh_mills_slope(curve.x, curve.h)
        ELSE
            dphh_normal_tail(curve.x)
            - dphh_normal_density(curve.x) * dphh_mills(curve.x + curve.h)
    END
)[1];

-- The smallest sigma that keeps (epsilon, delta), up to 1e-11 more.
CREATE OR REPLACE TEMP MACRO dphh_gaussian_sigma(epsilon, delta) AS
list_transform(
    [{ 'epsilon': CAST(epsilon AS DOUBLE), 'delta': CAST(delta AS DOUBLE) }],
    lambda budget: (1 + 1e-11) * pow(
        2,
        list_reduce(
            list_prepend(-20, dphh_halves()),
            (lambda low, half: CASE  -- noqa: PRS
                WHEN dphh_gaussian_delta(budget.epsilon, pow(2, low + half)) <= budget.delta
                    THEN low
                ELSE low + half
            END
            )
        )
    )
)[1];

-- The smallest epsilon of this noise at delta, up to 1e-11 more; 0 where none is needed.
CREATE OR REPLACE TEMP MACRO dphh_gaussian_epsilon(delta, sigma) AS
list_transform(
    [{ 'delta': CAST(delta AS DOUBLE), 'sigma': CAST(sigma AS DOUBLE) }],
    lambda spent: CASE
        WHEN dphh_gaussian_delta(0, spent.sigma) <= spent.delta THEN 0
        ELSE (1 + 1e-11) * pow(
            2,
            list_reduce(
                list_prepend(-44, dphh_halves()),
                (lambda low, half: CASE  -- noqa: PRS
                    WHEN dphh_gaussian_delta(pow(2, low + half), spent.sigma) <= spent.delta
                        THEN low
                    ELSE low + half
                END
                )
            )
        )
    END
)[1];


-- The cost of a plan -----------------------------------------------------------------------------

-- The one Gaussian that releases of these sigmas amount to (DPNE, Proposition 2.3).
CREATE OR REPLACE TEMP MACRO dphh_compose_sigmas(sigmas) AS
1 / sqrt(list_sum(list_transform(sigmas, lambda sigma: pow(CAST(sigma AS DOUBLE), -2))));

-- The probability that one of several things goes wrong, each on its own.
CREATE OR REPLACE TEMP MACRO dphh_compose_deltas(deltas) AS
-dphh_expm1(
    coalesce(list_sum(list_transform(deltas, lambda delta: dphh_log1p(-delta))), 0)
);

-- The delta at epsilon of Gaussian releases, and of steps that fail with probabilities `deltas`.
CREATE OR REPLACE TEMP MACRO dphh_cost_delta(sigmas, epsilon, deltas := []) AS
dphh_compose_deltas(
    [
        dphh_compose_deltas(deltas),
        dphh_gaussian_delta(CAST(epsilon AS DOUBLE), dphh_compose_sigmas(sigmas))
    ]
);

-- Their epsilon at delta; infinite where the steps alone may fail as often.
CREATE OR REPLACE TEMP MACRO dphh_cost_epsilon(sigmas, delta, deltas := []) AS
CASE
    WHEN dphh_compose_deltas(deltas) < delta
        THEN
            dphh_gaussian_epsilon(
                (delta - dphh_compose_deltas(deltas)) / (1 - dphh_compose_deltas(deltas)),
                dphh_compose_sigmas(sigmas)
            )
    ELSE CAST('inf' AS DOUBLE)
END;

-- Each level's part of 1/sigma^2 where sigma_k = decay sigma_(k-1).
CREATE OR REPLACE TEMP MACRO dphh_decaying_shares(levels, decay) AS
list_transform(
    range(levels),
    lambda k: pow(CAST(decay AS DOUBLE), -2 * k) / list_sum(
        list_transform(range(levels), lambda j: pow(CAST(decay AS DOUBLE), -2 * j))
    )
);

-- DP-SIPS: three rounds, each with 0.15 of the next one's part.
CREATE OR REPLACE TEMP MACRO dphh_sips_shares() AS
list_transform([0.0225, 0.15, 1.0], lambda part: CAST(part AS DOUBLE) / 1.1725);

-- What of delta the Gaussian curve and new items may take: of one round nearly all each, since no
-- user pays in full for both (docs/items.md); of several rounds half each.
CREATE OR REPLACE TEMP MACRO dphh_curve_share(epsilon, delta, rounds) AS
CASE WHEN rounds = 1 AND delta <= epsilon / 16.0 THEN 63 / 64.0 ELSE 0.5 END;

CREATE OR REPLACE TEMP MACRO dphh_new_items_share(epsilon, delta, rounds) AS
CASE WHEN rounds = 1 AND delta <= epsilon / 16.0 THEN 15 / 16.0 ELSE 0.5 END;


-- Weights and thresholds on the integer grid -----------------------------------------------------

-- The papers' threshold in users: the most, over t <= max_items, of
-- 1/sqrt(t) + sigma PhiInv((1 - delta)^(1/t)), which stands at one of the two ends.
CREATE OR REPLACE TEMP MACRO dphh_continuous_threshold(sigma, max_items, delta) AS
list_max(
    list_transform(
        [1, max_items],
        lambda t: 1 / sqrt(t) + sigma * dphh_normal_tail_inverse(
            -dphh_expm1(dphh_log1p(-delta) / t)
        )
    )
);

-- 2^b stands for one user: as fine as b = 10, coarser where the noise is very large.
CREATE OR REPLACE TEMP MACRO dphh_grid_bits(sigma) AS
CAST(greatest(0, least(10, floor(log2(pow(2, 17) / sigma)))) AS INTEGER);

-- What a user who holds `held` items adds to each: floor(2^b / sqrt(held)).
CREATE OR REPLACE TEMP MACRO dphh_grid_weight(bits, held) AS
CAST(floor(sqrt(floor(pow(4, bits) / held))) AS BIGINT);

-- The least k with P[round(N(0, sigma_grid^2)) >= k] <= q.
CREATE OR REPLACE TEMP MACRO dphh_noise_quantile(sigma_grid, q) AS
CAST(ceil(0.5 + sigma_grid * dphh_normal_tail_inverse(q)) AS BIGINT);

-- P[round(N(0, sigma_grid^2)) >= k].
CREATE OR REPLACE TEMP MACRO dphh_noise_tail(sigma_grid, k) AS
dphh_normal_tail((k - 0.5) / sigma_grid);

-- rho: the least integer that a user's own new items, t of them, pass with probability delta at
-- most, for every t.
CREATE OR REPLACE TEMP MACRO dphh_grid_threshold(sigma_grid, bits, max_items, delta) AS
list_max(
    list_transform(
        range(1, max_items + 1),
        lambda t: dphh_grid_weight(bits, t) + dphh_noise_quantile(sigma_grid, delta / t)
    )
);

-- The users, holding `held` items each, whose shared item is found with this probability.
CREATE OR REPLACE TEMP MACRO dphh_users_needed(
    sigma_grid, bits, threshold_grid, held := 1, probability := 0.9
) AS
greatest(
    1,
    CAST(
        ceil(
            (
                threshold_grid
                - floor(0.5 + sigma_grid * dphh_normal_tail_inverse(CAST(probability AS DOUBLE)))
            ) / dphh_grid_weight(bits, held)
        ) AS BIGINT
    )
);

-- rho_k of DPNE: P[noise >= rho_k] <= spurious min(1, |S_(k-1)| / |V_k|), where `below` n-grams
-- were released one length below and make `valid` ones of this length.
CREATE OR REPLACE TEMP MACRO dphh_spurious_threshold(sigma_grid, spurious, below, valid) AS
dphh_noise_quantile(
    sigma_grid,
    CAST(spurious AS DOUBLE) * CASE WHEN valid > below THEN CAST(below AS DOUBLE) / valid ELSE 1 END
);


-- `items` and `ngrams`: the price and the sight of a run ----------------------------------------

-- `items`: a row for each round of noise.
CREATE OR REPLACE TEMP MACRO dphh_price_items(
    epsilon, delta, max_items := 100, method := 'gaussian'
) AS TABLE
    WITH

    rounds AS (
        SELECT CASE method WHEN 'sips' THEN dphh_sips_shares() WHEN 'gaussian' THEN [1.0] END
            AS shares
    ),

    shared AS (
        SELECT
            unnest(shares) AS share,
            generate_subscripts(shares, 1) AS round,
            len(shares) AS rounds
        FROM rounds
    ),

    calibrated AS (
        SELECT
            round,
            CAST(share AS DOUBLE) AS share,
            delta * dphh_new_items_share(epsilon, delta, rounds) AS of_new_items,
            dphh_gaussian_sigma(epsilon, delta * dphh_curve_share(epsilon, delta, rounds))
            / sqrt(CAST(share AS DOUBLE)) AS sigma
        FROM shared
    ),

    on_grid AS (
        SELECT
            round,
            share,
            of_new_items,
            CAST(ceil(sigma * pow(2, min(dphh_grid_bits(sigma)) OVER ())) AS BIGINT) AS sigma_grid,
            min(dphh_grid_bits(sigma)) OVER () AS bits
        FROM calibrated
    ),

    thresholds AS (
        SELECT
            *,
            dphh_grid_threshold(sigma_grid, bits, max_items, share * of_new_items)
                AS threshold_grid
        FROM on_grid
    )

    SELECT
        round,
        CAST(max_items AS BIGINT) AS max_items,
        bits AS grid_bits,
        sigma_grid,
        threshold_grid,
        sigma_grid / pow(2, bits) AS sigma,
        threshold_grid / pow(2, bits) AS threshold,
        dphh_users_needed(sigma_grid, bits, threshold_grid) AS users_needed,
        dphh_users_needed(sigma_grid, bits, threshold_grid, held := max_items)
            AS users_needed_if_full
    FROM thresholds
    ORDER BY round;

-- `ngrams`: a row for each round in which words are found; few rounds may be enough. Longer n-grams
-- share the rest of the budget by what the run finds, so of them there is nothing to say here.
CREATE OR REPLACE TEMP MACRO dphh_price_ngrams(max_n, epsilon, delta, max_items := 100) AS TABLE
    WITH

    -- Each round has half the noise of the one before it: 1, 4 and 16 parts of an even share.
    rounds (round, delta_share) AS (VALUES (1, 0.02), (2, 0.03), (3, 0.95)),

    -- Three quarters of delta are for the noise of all rounds, one for words that are new.
    calibrated AS (
        SELECT dphh_gaussian_sigma(epsilon, delta * 0.75) * sqrt(max_n * 21) AS sigma
    ),

    -- A grid on which the table of noise stays small, as long as every weight is on it.
    gridded AS (
        SELECT
            sigma,
            CAST(
                greatest(floor(log2(32768 / sigma)), ceil(log2(max_items) / 2)) AS INTEGER
            ) AS first_bits
        FROM calibrated
    ),

    on_grid AS (
        SELECT
            round,
            CAST(ceil(sigma * pow(2, first_bits)) AS BIGINT) AS sigma_grid,
            first_bits + round - 1 AS bits,
            delta * 0.25 * CAST(delta_share AS DOUBLE) AS of_new_words
        FROM rounds
        CROSS JOIN gridded
    ),

    thresholds AS (
        SELECT
            *,
            dphh_grid_threshold(sigma_grid, bits, max_items, of_new_words) AS threshold_grid
        FROM on_grid
    )

    SELECT
        1 AS level,
        round,
        CAST(max_items AS BIGINT) AS max_items,
        CAST(bits AS INTEGER) AS grid_bits,
        sigma_grid,
        threshold_grid,
        sigma_grid / pow(2, bits) AS sigma,
        threshold_grid / pow(2, bits) AS threshold,
        dphh_users_needed(sigma_grid, bits, threshold_grid) AS users_needed
    FROM thresholds
    ORDER BY round;

-- `ngrams` with method "dpne": a row for each length. Beyond words the threshold follows from what
-- is released; `threshold` is then the most it can be if at most `words` words are.
-- `users_needed`: users who hold one n-gram of that length and nothing else find it with
-- probability 0.9; its pieces must be found too, and their chances to fail are added up.
CREATE OR REPLACE TEMP MACRO dphh_price_dpne(
    max_n,
    epsilon,
    delta,
    max_items := 100,
    spurious := 0.01,
    decay := 1.0,
    shares := NULL,
    words := 1000000
) AS TABLE
    WITH

    shared AS (
        SELECT
            CAST(unnest(coalesce(shares, dphh_decaying_shares(max_n, decay))) AS DOUBLE) AS share,
            generate_subscripts(coalesce(shares, dphh_decaying_shares(max_n, decay)), 1) AS level
    ),

    calibrated AS (
        SELECT
            level,
            dphh_gaussian_sigma(epsilon, delta / 2) * sqrt(sum(share) OVER () / share) AS sigma
        FROM shared
    ),

    on_grid AS (
        SELECT
            level,
            CAST(ceil(sigma * pow(2, min(dphh_grid_bits(sigma)) OVER ())) AS BIGINT) AS sigma_grid,
            min(dphh_grid_bits(sigma)) OVER () AS bits
        FROM calibrated
    ),

    thresholds AS (
        SELECT
            *,
            CASE
                WHEN level = 1
                    THEN dphh_grid_threshold(sigma_grid, bits, max_items, delta / 2)
                ELSE dphh_spurious_threshold(sigma_grid, spurious, 1, words)
            END AS threshold_grid
        FROM on_grid
    ),

    ladder AS (
        SELECT
            list(
                { 'level': level, 'sigma': sigma_grid, 'threshold': threshold_grid } ORDER BY level
            ) AS steps
        FROM thresholds
    )

    SELECT
        thresholds.level,
        CAST(max_items AS BIGINT) AS max_items,
        thresholds.bits AS grid_bits,
        thresholds.sigma_grid,
        thresholds.threshold_grid,
        thresholds.sigma_grid / pow(2, thresholds.bits) AS sigma,
        thresholds.threshold_grid / pow(2, thresholds.bits) AS threshold,
        CASE
            WHEN thresholds.level <= max_items
                THEN
                    1 + list_reduce(
                        dphh_whole_halves(),
                        (lambda low, half: CASE  -- noqa: PRS
                            WHEN list_sum(
                                list_transform(
                                    list_slice(ladder.steps, 1, thresholds.level),
                                    lambda step: (thresholds.level - step.level + 1) * dphh_normal_cdf(
                                        (
                                            step.threshold - 0.5
                                            - (low + half) * dphh_grid_weight(
                                                thresholds.bits,
                                                least(thresholds.level - step.level + 1, max_items)
                                            )
                                        ) / step.sigma
                                    )
                                )
                            ) <= 0.1 THEN low
                            ELSE low + half
                        END
                        )
                    )
        END AS users_needed
    FROM thresholds
    CROSS JOIN ladder
    ORDER BY thresholds.level;


-- Numbers of votes: binomial and hypergeometric --------------------------------------------------

-- How far Stirling's formula for ln(n!) is off, and how far k is from what is expected: Loader's
-- way to binomial probabilities without the cancellation of large logarithms (2000).
CREATE OR REPLACE TEMP MACRO dphh_stirling_error(n) AS
CASE
    WHEN n < 16
        THEN lgamma(n + CAST(1 AS DOUBLE)) - (n + 0.5) * ln(n) + n - ln(2 * pi()) / 2
    ELSE (1 / 12.0 - (1 / 360.0 - (1 / 1260.0 - 1 / (1680.0 * n * n)) / (n * n)) / (n * n)) / n
END;

CREATE OR REPLACE TEMP MACRO dphh_deviance(expected, more) AS
(expected + more) * dphh_log1p(more / expected) - more;

-- P[Binomial(n, p) = k].
CREATE OR REPLACE TEMP MACRO dphh_binomial(k, n, p) AS
list_transform(
    [{ 'k': CAST(k AS DOUBLE), 'n': CAST(n AS DOUBLE), 'p': CAST(p AS DOUBLE) }],
    lambda b: CASE
        WHEN b.k < 0 OR b.k > b.n THEN 0
        WHEN b.p >= 1 THEN CASE WHEN b.k = b.n THEN 1 ELSE 0 END
        WHEN b.k = 0 THEN exp(b.n * dphh_log1p(-b.p))
        WHEN b.k = b.n THEN exp(b.n * ln(b.p))
        ELSE sqrt(b.n / (2 * pi() * b.k * (b.n - b.k))) * exp(
            dphh_stirling_error(b.n) - dphh_stirling_error(b.k) - dphh_stirling_error(b.n - b.k)
            - dphh_deviance(b.n * b.p, b.k - b.n * b.p)
            - dphh_deviance(b.n - b.n * b.p, b.n * b.p - b.k)
        )
    END
)[1];

-- P[k of the holders are among a batch of so many of the users].
CREATE OR REPLACE TEMP MACRO dphh_hypergeometric(k, holders, users, batch) AS
dphh_binomial(k, holders, batch / users) * dphh_binomial(batch - k, users - holders, batch / users)
/ dphh_binomial(batch, users, batch / users);

-- P[theta or more], for probabilities that only fall away from `expected`: summed from theta
-- outwards, upwards where that is the smaller part, a dozen standard deviations and more.
CREATE OR REPLACE TEMP MACRO dphh_binomial_tail(holders, p, theta) AS
CASE
    WHEN holders < theta THEN 0
    WHEN theta > holders * p
        THEN
            list_sum(
                list_transform(
                    range(theta, theta + CAST(60 + 12 * sqrt(theta) AS BIGINT)),
                    lambda votes: dphh_binomial(votes, holders, p)
                )
            )
    ELSE 1 - list_sum(
        list_transform(
            range(greatest(0, theta - CAST(60 + 12 * sqrt(theta) AS BIGINT)), theta),
            lambda votes: dphh_binomial(votes, holders, p)
        )
    )
END;

CREATE OR REPLACE TEMP MACRO dphh_hypergeometric_tail(holders, users, batch, theta) AS
CASE
    WHEN holders < theta OR batch < theta THEN 0
    WHEN theta > holders * (batch / users)
        THEN
            list_sum(
                list_transform(
                    range(theta, theta + CAST(60 + 12 * sqrt(theta) AS BIGINT)),
                    lambda votes: dphh_hypergeometric(votes, holders, users, batch)
                )
            )
    ELSE 1 - list_sum(
        list_transform(
            range(greatest(0, theta - CAST(60 + 12 * sqrt(theta) AS BIGINT)), theta),
            lambda votes: dphh_hypergeometric(votes, holders, users, batch)
        )
    )
END;


-- `trie`: what TrieHH costs and finds ------------------------------------------------------------

-- Proposition 1 of TrieHH, with every user asked with probability p at each level: how often a
-- sequence of so many holders is found, if it shares no prefix with another.
CREATE OR REPLACE TEMP MACRO dphh_discovery_rate(holders, theta, p, max_length) AS
pow(dphh_binomial_tail(holders, p, theta), max_length);

-- The same with a batch drawn from the users at each level.
CREATE OR REPLACE TEMP MACRO dphh_batch_discovery_rate(holders, theta, batch, users, max_length) AS
pow(dphh_hypergeometric_tail(holders, users, batch, theta), max_length);

-- The least number of holders whose sequence is found so often.
CREATE OR REPLACE TEMP MACRO dphh_holders_needed(theta, p, max_length, probability := 0.9) AS
1 + list_reduce(
    dphh_whole_halves(),
    (lambda low, half: CASE  -- noqa: PRS
        WHEN dphh_discovery_rate(low + half, theta, p, max_length) >= probability THEN low
        ELSE low + half
    END
    )
);

CREATE OR REPLACE TEMP MACRO dphh_batch_holders_needed(
    theta, batch, users, max_length, probability := 0.9
) AS
nullif(
    1 + list_reduce(
        dphh_whole_halves(),
        (lambda low, half: CASE  -- noqa: PRS
            WHEN low + half > users THEN low
            WHEN
                dphh_batch_discovery_rate(low + half, theta, batch, users, max_length)
                >= probability
                THEN low
            ELSE low + half
        END
        )
    ),
    users + 1
);

-- What the coins of the path accountant cost in the direction "a user leaves": ln(1/(1 - p)). The
-- other direction needs the accountant itself: `dphh trie ... --plan`.
CREATE OR REPLACE TEMP MACRO dphh_removal_epsilon(p) AS
-dphh_log1p(-p);

-- The published theorem (one direction, fixed n): epsilon = -L ln(1 - theta m / n), and
-- delta = (theta - 2) / ((theta - 3) theta!).
CREATE OR REPLACE TEMP MACRO dphh_triehh_epsilon(users, theta, batch, max_length) AS
-max_length * dphh_log1p(-theta * (batch / users));

CREATE OR REPLACE TEMP MACRO dphh_triehh_delta(theta) AS
(theta - 2) / ((theta - 3) * gamma(theta + CAST(1 AS DOUBLE)));

-- The least theta that keeps delta.
CREATE OR REPLACE TEMP MACRO dphh_triehh_theta(delta) AS
list_min(list_filter(range(4, 171), lambda theta: dphh_triehh_delta(theta) <= delta));

-- `trie` with accounting "paper": theta from delta, or ceil(log10 n + 6) without one, and with it
-- the largest batch that keeps epsilon; no row where the theorem's conditions leave none.
CREATE OR REPLACE TEMP MACRO dphh_price_trie_batches(
    users, epsilon, max_length, delta := NULL
) AS TABLE
    WITH

    votes AS (
        SELECT
            CASE
                WHEN delta IS NULL THEN length(CAST(CAST(users AS BIGINT) - 1 AS VARCHAR)) + 6
                ELSE dphh_triehh_theta(delta)
            END AS theta
    ),

    batches AS (
        SELECT
            theta,
            CAST(
                floor(
                    least(users * (1 - exp(-(epsilon) / max_length)) / theta, users // (theta + 1))
                ) AS BIGINT
            ) AS batch
        FROM votes
    )

    SELECT
        theta,
        batch,
        batch / sqrt(users) AS gamma,
        batch / users AS fraction,
        dphh_triehh_epsilon(users, theta, batch, max_length) AS epsilon,
        dphh_triehh_delta(theta) AS delta,
        dphh_batch_holders_needed(theta, batch, users, max_length) AS holders_needed
    FROM batches
    WHERE batch * batch >= users AND theta * theta <= users;


-- `ldp_trie`: subset selection -------------------------------------------------------------------

-- Subsets of size ceil(s / (e^epsilon + 1)) among s = `domain` values: p, that a user's own value
-- is in theirs; q, that another given one is; and the error: the standard deviation of the count
-- estimated for a value that nobody holds is that times the square root of the users.
CREATE OR REPLACE TEMP MACRO dphh_subset_selection(domain, local_epsilon) AS TABLE
    WITH

    sizes AS (SELECT ceil(domain / (exp(local_epsilon) + 1)) AS size),

    own AS (
        SELECT
            size,
            size * exp(local_epsilon) / (size * exp(local_epsilon) + domain - size) AS p
        FROM sizes
    ),

    others AS (
        SELECT
            size,
            p,
            (p * (size - 1) + (1 - p) * size) / (domain - 1) AS q
        FROM own
    )

    SELECT
        p,
        q,
        CAST(size AS BIGINT) AS size,
        sqrt(q * (1 - q)) / (p - q) AS error
    FROM others;


-- Saved releases ---------------------------------------------------------------------------------

-- The folder that `--out` wrote: level, item, tokens, score; and ended, for `trie`.
CREATE OR REPLACE TEMP MACRO dphh_release_at(folder) AS TABLE
    SELECT * FROM read_parquet(rtrim(folder, '/') || '/release.parquet');  -- noqa: AM04

-- Its manifest, one row: verb, parameters, privacy statement, levels.
CREATE OR REPLACE TEMP MACRO dphh_manifest_at(folder) AS TABLE
    SELECT * FROM read_json(rtrim(folder, '/') || '/release.json');  -- noqa: AM04

-- Every release with what others have: `trie` says what ends, `counts` how many people and within
-- which group, the rest have scores. Counted within groups an item has a row in each.
CREATE OR REPLACE TEMP MACRO dphh_rows(release) AS TABLE
    SELECT * FROM query_table(release)  -- noqa: AM04
    UNION ALL BY NAME
    SELECT
        CAST(NULL AS BOOLEAN) AS ended,
        CAST(NULL AS DOUBLE) AS score,
        CAST(NULL AS VARCHAR) AS "group",
        CAST(NULL AS BIGINT) AS users,
        CAST(NULL AS BIGINT) AS low,
        CAST(NULL AS BIGINT) AS high
    WHERE FALSE;

CREATE OR REPLACE TEMP MACRO dphh_levels(release) AS TABLE
    SELECT
        level,
        count(DISTINCT tokens) AS items,
        min(score) AS least_score,
        median(score) AS median_score,
        max(score) AS most_score
    FROM dphh_rows(release)
    GROUP BY level
    ORDER BY level;

-- One step down from a prefix, a list of tokens; [] is the root. `ended`: sequences end there.
CREATE OR REPLACE TEMP MACRO dphh_children(release, prefix := []) AS TABLE
    SELECT
        item,
        "group",
        tokens[-1] AS token,
        bool_or(ended) AS ended,
        max(score) AS score,
        max(users) AS users,
        max(low) AS low,
        max(high) AS high
    FROM dphh_rows(release)
    WHERE
        len(tokens) = len(prefix) + 1
        AND list_slice(tokens, 1, len(prefix)) = CAST(prefix AS VARCHAR[])
    GROUP BY tokens, item, "group"
    ORDER BY score DESC NULLS LAST, max(users) DESC NULLS LAST, item ASC, "group" ASC;

-- Everything at and below a prefix, indented. A score orders what has the same `length`; between
-- lengths it says nothing, and it is no number of people. `users` is one, within `group` if there
-- is one, and from `low` to `high`.
CREATE OR REPLACE TEMP MACRO dphh_tree(release, prefix := []) AS TABLE
    SELECT
        "group",
        repeat('  ', len(tokens) - 1) || tokens[-1] AS tree,
        len(tokens) AS length,
        bool_or(ended) AS ended,
        max(score) AS score,
        max(users) AS users,
        max(low) AS low,
        max(high) AS high
    FROM dphh_rows(release)
    WHERE len(tokens) > 0 AND list_slice(tokens, 1, len(prefix)) = CAST(prefix AS VARCHAR[])
    GROUP BY tokens, "group"
    ORDER BY tokens ASC, "group" ASC;

-- The longest beginning of a sequence, a list of tokens, that was released.
CREATE OR REPLACE TEMP MACRO dphh_longest_prefix(release, sequence) AS TABLE
    SELECT
        item,
        len(tokens) AS length,
        max(score) AS score
    FROM dphh_rows(release)
    WHERE tokens = list_slice(CAST(sequence AS VARCHAR[]), 1, len(tokens))
    GROUP BY item, tokens
    ORDER BY length DESC
    LIMIT 1;

-- What begins as has been typed: short before long, and of one length the highest scores first.
CREATE OR REPLACE TEMP MACRO dphh_completions(release, typed, most := 20) AS TABLE
    SELECT
        item,
        len(tokens) AS length,
        max(score) AS score
    FROM dphh_rows(release)
    WHERE starts_with(item, typed)
    GROUP BY item, length
    ORDER BY length ASC, score DESC NULLS LAST, item ASC
    LIMIT most;

-- What follows a context, a list of tokens, the highest scores first: noised weights, which do not
-- say how often a token follows. Where nothing released goes on from the whole context, its longest
-- ending counts that something goes on from: `after` says which.
CREATE OR REPLACE TEMP MACRO dphh_next_words(release, context) AS TABLE
    WITH

    continuing AS (
        SELECT
            tokens[-1] AS token,
            list_slice(tokens, 1, -2) AS after,
            max(score) AS score
        FROM dphh_rows(release)
        WHERE
            len(tokens) BETWEEN 1 AND len(context) + 1
            AND list_slice(tokens, 1, -2) = list_slice(
                CAST(context AS VARCHAR[]), len(context) + 2 - len(tokens), len(context)
            )
        GROUP BY tokens
    )

    SELECT
        token,
        after,
        score
    FROM continuing
    QUALIFY len(after) = max(len(after)) OVER ()
    ORDER BY score DESC NULLS LAST, token ASC;

-- Which parts of a sequence, a list of tokens, were released: all runs of its tokens, or in a
-- trie its beginnings. `ngrams` looks at a phrase where its parts were released; what has them
-- all and is not there stayed below its threshold, whether many hold it or nobody does.
CREATE OR REPLACE TEMP MACRO dphh_why(release, sequence) AS TABLE
    WITH

    starts AS (
        SELECT
            CAST(sequence AS VARCHAR[]) AS tokens,
            unnest(range(1, len(sequence) + 1)) AS start
    ),

    parts AS (
        SELECT
            start,
            list_slice(tokens, start, unnest(range(start, len(tokens) + 1))) AS part
        FROM starts
    ),

    ends AS (
        SELECT 1
        FROM dphh_rows(release)
        WHERE ended IS NOT NULL
    )

    SELECT
        part,
        len(part) AS length,
        part IN (SELECT tokens FROM dphh_rows(release)) AS released
    FROM parts
    WHERE start = 1 OR NOT EXISTS (FROM ends)
    ORDER BY length, start;

-- Released items with tokens that a public dictionary lacks: a table, view or file with a column
-- `word`. Capitals do not matter.
CREATE OR REPLACE TEMP MACRO dphh_new_to(release, dictionary) AS TABLE
    WITH

    known AS (
        SELECT DISTINCT lower(word) AS word FROM query_table(dictionary)
    ),

    parts AS (
        SELECT
            item,
            level,
            score,
            unnest(tokens) AS token
        FROM dphh_rows(release)
    )

    SELECT
        parts.item,
        parts.level,
        max(parts.score) AS score,
        list(DISTINCT parts.token ORDER BY parts.token) AS unknown
    FROM parts
    ANTI JOIN known ON lower(parts.token) = known.word
    GROUP BY parts.item, parts.level
    ORDER BY parts.level ASC, score DESC NULLS LAST, parts.item ASC;

-- What one release has and another has not, and how scores moved. Both have noise of their own:
-- a small change of score says nothing, and an item near the threshold comes and goes by chance.
CREATE OR REPLACE TEMP MACRO dphh_compare(before, after) AS TABLE
    WITH

    old AS (
        SELECT
            level,
            item,
            tokens,
            max(score) AS score
        FROM dphh_rows(before)
        GROUP BY level, item, tokens
    ),

    new AS (
        SELECT
            level,
            item,
            tokens,
            max(score) AS score
        FROM dphh_rows(after)
        GROUP BY level, item, tokens
    )

    SELECT
        old.score AS score_before,
        new.score AS score_after,
        coalesce(new.level, old.level) AS level,
        coalesce(new.item, old.item) AS item,
        CASE
            WHEN old.level IS NULL THEN 'gained'
            WHEN new.level IS NULL THEN 'lost'
            ELSE 'kept'
        END AS change,
        new.score - old.score AS score_change
    FROM old
    FULL JOIN new ON old.level = new.level AND old.tokens = new.tokens
    ORDER BY coalesce(new.level, old.level), change ASC, coalesce(new.score, old.score) DESC, item;


-- Help -------------------------------------------------------------------------------------------

CREATE OR REPLACE TEMP MACRO dphh_help() AS TABLE
    WITH

    macros (kind, call, what) AS (
        VALUES
        (
            'price',
            'FROM dphh_price_items(epsilon, delta, max_items := 100, method := ''gaussian'')',
            'items: noise, threshold, and the users an item needs to be found with probability 0.9'
        ),
        (
            'price',
            'FROM dphh_price_ngrams(max_n, epsilon, delta, max_items := 100)',
            'ngrams: the same for words, a row for each round'
        ),
        (
            'price',
            'FROM dphh_price_dpne(max_n, epsilon, delta, max_items := 100, spurious := 0.01, '
            || 'decay := 1.0, shares := NULL, words := 1000000)',
            'ngrams with method "dpne": for each length, if at most so many words are released'
        ),
        (
            'price', 'FROM dphh_price_trie_batches(users, epsilon, max_length, delta := NULL)',
            'trie with accounting "paper": theta, batch, gamma, and the holders needed'
        ),
        (
            'price', 'FROM dphh_subset_selection(domain, local_epsilon)',
            'ldp_trie: size of the subsets, p, q, and the error of an estimate'
        ),
        ('noise', 'dphh_gaussian_sigma(epsilon, delta)', 'the smallest sigma that keeps a budget'),
        ('noise', 'dphh_gaussian_delta(epsilon, sigma)', 'the delta of a sigma at epsilon'),
        ('noise', 'dphh_gaussian_epsilon(delta, sigma)', 'the epsilon of a sigma at delta'),
        (
            'noise', 'dphh_continuous_threshold(sigma, max_items, delta)',
            'the threshold of the papers, in users'
        ),
        (
            'noise', 'dphh_grid_threshold(sigma_grid, bits, max_items, delta)',
            'the threshold of a plan, on the grid where 2^bits is one user'
        ),
        (
            'noise',
            'dphh_users_needed(sigma_grid, bits, threshold_grid, held := 1, probability := 0.9)',
            'the users, of so many items each, that make a shared item found'
        ),
        (
            'noise', 'dphh_spurious_threshold(sigma_grid, spurious, below, valid)',
            'rho_k of DPNE on the grid, for |S_(k-1)| = below and |V_k| = valid'
        ),
        (
            'cost', 'dphh_cost_epsilon(sigmas, delta, deltas := [])',
            'what Gaussian releases cost together, with steps that fail with probabilities `deltas`'
        ),
        ('cost', 'dphh_cost_delta(sigmas, epsilon, deltas := [])', 'the same, the other way round'),
        ('cost', 'dphh_compose_sigmas(sigmas)', 'the one Gaussian that they amount to'),
        (
            'cost', 'dphh_decaying_shares(levels, decay)',
            'each level''s part of 1/sigma^2 if noise decays'
        ),
        (
            'trie', 'dphh_discovery_rate(holders, theta, p, max_length)',
            'how often a sequence is found, with coins of probability p'
        ),
        (
            'trie', 'dphh_holders_needed(theta, p, max_length, probability := 0.9)',
            'how many must hold a sequence for that'
        ),
        ('trie', 'dphh_removal_epsilon(p)', 'what the coins cost in the direction "a user leaves"'),
        (
            'trie', 'dphh_batch_discovery_rate(holders, theta, batch, users, max_length)',
            'how often a sequence is found, with batches (Proposition 1)'
        ),
        (
            'trie',
            'dphh_batch_holders_needed(theta, batch, users, max_length, probability := 0.9)',
            'how many must hold a sequence for that'
        ),
        (
            'trie', 'dphh_triehh_epsilon(users, theta, batch, max_length)',
            'epsilon by the published theorem, one direction'
        ),
        ('trie', 'dphh_triehh_delta(theta)', 'its delta'),
        ('trie', 'dphh_triehh_theta(delta)', 'the least theta that keeps a delta'),
        ('normal', 'dphh_normal_cdf(x)', 'P[N <= x]'),
        ('normal', 'dphh_normal_tail(x)', 'P[N >= x], with all digits however far out'),
        ('normal', 'dphh_normal_tail_inverse(q)', 'the x with P[N >= x] = q'),
        ('release', 'FROM dphh_release_at(folder)', 'the release that --out wrote to a folder'),
        ('release', 'FROM dphh_manifest_at(folder)', 'its manifest: privacy, parameters, levels'),
        ('release', 'FROM dphh_levels(release)', 'items and scores of each level'),
        ('release', 'FROM dphh_children(release, prefix := [])', 'one step down from a prefix'),
        ('release', 'FROM dphh_tree(release, prefix := [])', 'all below a prefix, indented'),
        (
            'release', 'FROM dphh_longest_prefix(release, sequence)',
            'the longest released beginning of a list of tokens'
        ),
        (
            'release', 'FROM dphh_completions(release, typed, most := 20)',
            'what begins as typed, short before long'
        ),
        (
            'release', 'FROM dphh_next_words(release, context)',
            'what follows a list of tokens, highest scores first'
        ),
        (
            'release', 'FROM dphh_why(release, sequence)',
            'which parts of a list of tokens were released'
        ),
        (
            'release', 'FROM dphh_new_to(release, dictionary)',
            'items with tokens that a dictionary (column `word`) lacks'
        ),
        (
            'release',
            'FROM dphh_compare(before, after)',
            'gained, lost and kept, and how scores moved'
        )
    )

    SELECT
        kind,
        call,
        what
    FROM macros;
