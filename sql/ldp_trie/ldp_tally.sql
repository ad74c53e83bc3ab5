-- How many accepted messages contain each value. In: verdicts. Out: reports (value, reports).
CREATE TEMP TABLE reports AS
WITH

reported AS (
    SELECT unnest(subset) AS value
    FROM verdicts
    WHERE verdict = 'accepted'
)

SELECT
    value,
    count(*) AS reports
FROM reported
GROUP BY value;
