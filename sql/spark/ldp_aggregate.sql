-- LDP TrieHH, one level, where only the sums of the reports are drawn (docs/ldp_trie.md): a value
-- that m of n reports are for is in Binomial(m, p) + Binomial(n - m, q) of them, independently of
-- other values. Values that nobody holds are drawn too; "nothing" has no count. One task on an
-- executor draws all values, because they share a table of Binomial(n, q): there are no more values
-- than the plan says, whatever the data. How many hold a value stays on the executors.
-- In: chosen (seat, report, value). Out: reports (value, reports), drawn once.
CREATE TABLE reports AS
WITH

counted AS (
    SELECT
        value,
        count(*) AS holders
    FROM chosen
    GROUP BY value
),

held AS (
    SELECT collect_list(struct(value, holders)) AS counts
    FROM counted
),

drawn AS (
    SELECT
        dphh_aggregate(
            counts,
            $domain - $nothings,
            ($last_seat - $first_seat) * CAST($contributions AS BIGINT),
            $domain,
            $size,
            CAST($numerator AS DECIMAL(20, 0)),
            $purpose
        ) AS reports
    FROM held
)

-- Values are numbered from 0.
SELECT
    CAST(of_values.value AS BIGINT) AS value,
    of_values.reports
FROM drawn
    LATERAL VIEW
    posexplode(drawn.reports) of_values AS value, reports;
