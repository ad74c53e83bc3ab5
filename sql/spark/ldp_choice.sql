-- LDP TrieHH, one level on the devices, before anything is randomised (Algorithm 2, lines 11 to
-- 13): of the next prefixes that a user holds, at most $contributions are chosen. In whatever
-- order, what is chosen depends on that user's words and draws alone.
-- In: choice_draws (seat, value, times, draw). Out: chosen (seat, report, value), report from 1.
CREATE TABLE chosen AS
WITH

ranked AS (
    SELECT
        seat,
        value,
        row_number() OVER (
            PARTITION BY seat
            ORDER BY CASE $sampling WHEN 'greedy' THEN -times ELSE 0 END, draw, value
        ) AS report
    FROM choice_draws
)

SELECT
    seat,
    report,
    value
FROM ranked
WHERE report <= $contributions;
