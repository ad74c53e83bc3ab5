-- LDP TrieHH, one level (Algorithm 2, lines 14 to 21): every user of the level sends
-- $contributions reports by subset selection (Algorithm 1), and the query counts the reports that
-- contain each value. A user who chose fewer values fills up with reports of "nothing", which has
-- another value in each report, so that no user reports a value twice.
-- In: chosen (seat, report, value). Out: messages (subset), drawn once; reports (value, reports).
CREATE TEMP TABLE messages AS
WITH

due AS (
    SELECT seats.seat, turns.report
    FROM range($seats_before + 1, $last_seat + 1) AS seats (seat)
    CROSS JOIN range(1, $contributions + 1) AS turns (report)
),

said AS (
    SELECT
        due.seat,
        due.report,
        CAST(
            coalesce(chosen.value, $domain - $contributions + due.report - 1) AS BIGINT
        ) AS value
    FROM due
    LEFT JOIN chosen ON due.seat = chosen.seat AND due.report = chosen.report
)

SELECT
    dphh_report(
        seat || chr(31) || report,
        value,
        $domain,
        $subset_size,
        CAST($numerator AS DECIMAL(20, 0)),
        $purpose
    ) AS subset
FROM said;

CREATE TEMP TABLE reports AS
WITH

reported AS (
    SELECT unnest(subset) AS value
    FROM messages
)

SELECT value, count(*) AS reports
FROM reported
GROUP BY value;
