-- LDP TrieHH, one level (Algorithm 2, lines 14 to 21): every user of the level sends
-- $contributions reports by subset selection (Algorithm 1): "nothing" where they have no more to
-- say, a value of its own for each of a user's reports, so that nobody reports a value twice.
-- In: chosen (seat, report, value). Out: messages (subset), drawn once.
CREATE TABLE messages AS
WITH

due AS (
    SELECT
        seats.id AS seat,
        turns.id AS report
    FROM range($first_seat + 1, $last_seat + 1) AS seats
    CROSS JOIN range(1, $contributions + 1) AS turns
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
        $size,
        CAST($numerator AS DECIMAL(20, 0)),
        $purpose
    ) AS subset
FROM said;
