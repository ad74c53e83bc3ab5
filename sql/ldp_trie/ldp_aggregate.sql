-- LDP TrieHH, one level, where only the sums of the reports are drawn (docs/ldp_trie.md): a value
-- that m of n reports are for is in Binomial(m, p) + Binomial(n - m, q) of them, independently of
-- other values. Values that nobody holds are drawn too; "nothing" has no count. One call draws all
-- values, because they share a table of Binomial(n, q).
-- In: chosen (seat, report, value). Out: reports (value, reports), drawn once.
CREATE TEMP TABLE reports AS
WITH

counted AS (
    SELECT
        value,
        count(*) AS holders
    FROM chosen
    GROUP BY value
),

held AS (
    SELECT list(struct_pack(value := value, holders := holders)) AS counts
    FROM counted
),

drawn AS MATERIALIZED (
    SELECT
        dphh_aggregate(
            counts,
            $domain - $nothings,
            ($last_seat - $first_seat) * CAST($contributions AS BIGINT),
            $domain,
            $size,
            CAST($numerator AS UBIGINT),
            $purpose
        ) AS reports
    FROM held
)

-- Values are numbered from 0.
SELECT
    unnest(range(len(drawn.reports))) AS value,
    unnest(drawn.reports) AS reports
FROM drawn;
