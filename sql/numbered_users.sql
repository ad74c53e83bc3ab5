-- Users by number, where the column that names them is anything but an integer: numbers are what
-- every later step hashes, joins and sorts. In: texts. Out: numbered_texts (user_id, tokens).
CREATE TEMP TABLE numbered_texts AS
WITH

users AS (
    SELECT
        user_id,
        row_number() OVER () AS number
    FROM (SELECT DISTINCT user_id FROM texts) AS distinct_users
)

SELECT
    users.number AS user_id,
    texts.tokens
FROM texts
INNER JOIN users ON texts.user_id = users.user_id;
