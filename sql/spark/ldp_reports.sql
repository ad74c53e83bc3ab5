-- The reports that hold a value, counted. In: messages (subset). Out: reports (value, reports).
CREATE TABLE reports AS
WITH

reported AS (
    SELECT explode(subset) AS value
    FROM messages
)

SELECT
    value,
    count(*) AS reports
FROM reported
GROUP BY value;
