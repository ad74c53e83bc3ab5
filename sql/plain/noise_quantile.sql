-- The least weight that noise reaches with at most a given probability, in SQL alone, to about
-- eleven digits: for the threshold of a DPNE level (dpne_threshold.sql). A run uses the noise's
-- exact table instead.
-- In these macros, `list_transform([x], lambda y: ...)[1]` gives x a name.
--
-- For the linter, which takes macro parameters for types, and cannot parse lambdas of two:
-- noqa: disable=CP05

CREATE OR REPLACE TEMP MACRO dphh_normal_density(x) AS
exp(-(x) * (x) / 2) / sqrt(2 * pi());

-- The Mills ratio (1 - Phi(u)) / phi(u), to 1e-14 at every u above -38: the integral over all s of
-- u phi(s) / (s^2 + u^2) by the midpoint rule with step 1/2, plus that rule's correction for the
-- pole s = iu (Chiarella & Reichel 1968).
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

-- ln P[N >= z] for z >= 0, also where the probability itself underflows.
CREATE OR REPLACE TEMP MACRO dphh_log_normal_tail(z) AS
ln(dphh_mills(z)) - (z) * (z) / 2 - ln(2 * pi()) / 2;

-- The x with P[N >= x] = q, by Newton's method on ln P. Since ln P is concave, all iterates but the
-- first are above x and fall to it, and each has about twice as many correct digits.
CREATE OR REPLACE TEMP MACRO dphh_normal_tail_inverse(q) AS
list_transform(
    [{ 'q': least(CAST(q AS DOUBLE), 1 - q), 'side': CASE WHEN q > 0.5 THEN -1 ELSE 1 END }],
    lambda wanted: wanted.side * list_reduce(
        list_resize([sqrt(-2 * ln(wanted.q))], 10, 0),
        (lambda z, step: z + dphh_mills(z) * (dphh_log_normal_tail(z) - ln(wanted.q)))  -- noqa: PRS
    )
)[1];

-- The least k with P[round(N(0, sigma_grid^2)) >= k] <= q.
CREATE OR REPLACE TEMP MACRO dphh_noise_quantile(sigma_grid, q) AS
CAST(ceil(0.5 + sigma_grid * dphh_normal_tail_inverse(q)) AS BIGINT);
