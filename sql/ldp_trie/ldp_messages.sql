-- LDP TrieHH, one level (Algorithm 2, lines 14 to 21): every user of the level sends
-- $contributions reports by subset selection (Algorithm 1), and the query counts the reports that
-- contain each value. Surplus reports say "nothing": a different value in each, so that no user
-- reports a value twice.
-- In: chosen (seat, report, value). Out: reports (value, reports), drawn once.
CREATE TEMP TABLE reports AS
WITH

due AS (
    SELECT
        seats.range AS seat,
        turns.range AS report
    FROM range($first_seat + 1, $last_seat + 1) AS seats, range(1, $contributions + 1) AS turns
),

said AS (
    SELECT
        due.seat,
        due.report,
        coalesce(chosen.value, $domain - $contributions + due.report - 1) AS value
    FROM due
    LEFT JOIN chosen ON due.seat = chosen.seat AND due.report = chosen.report
),

messages AS (
    SELECT
        dphh_report(
            seat || chr(31) || report,
            value,
            $domain,
            $size,
            CAST($numerator AS UBIGINT),
            $purpose
        ) AS subset
    FROM said
),

reported AS (
    SELECT unnest(subset) AS value
    FROM messages
)

SELECT
    value,
    count(*) AS reports
FROM reported
GROUP BY value;
