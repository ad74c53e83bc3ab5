-- The corpus's texts, all of one user's side by side, for one part in $parts of the users. They are
-- brought together by sorting, which spills, and takes a quarter of the time of hashing into lists.
-- In: rows_of_corpus (user_id, content). Out: texts_of_users (place, is_first, name, content):
-- places count from 1, and the first text of a user has the user's name.
CREATE OR REPLACE TEMP TABLE texts_of_users AS
WITH

texts AS (
    SELECT
        user_id,
        content
    FROM rows_of_corpus
    WHERE
        -- What nobody's rows hold is looked up apart (rows_of_nobody.sql).
        user_id IS NOT NULL
        AND hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

side_by_side AS (
    SELECT
        user_id,
        content
    FROM texts
    ORDER BY user_id
),

neighbours AS (
    SELECT
        row_number() OVER () AS place,
        user_id,
        lag(user_id) OVER () AS user_before,
        content
    FROM side_by_side
),

compared AS (
    SELECT
        place,
        user_id,
        (user_before IS DISTINCT FROM user_id) AS is_first,
        user_before > user_id AS is_misplaced,
        content
    FROM neighbours
)

-- A user whose texts lay apart would count as several, so an order of another kind is refused.
SELECT
    CASE WHEN is_misplaced THEN error('dphh: users out of order') ELSE place END AS place,
    is_first,
    CASE WHEN is_first THEN CAST(user_id AS VARCHAR) END AS name,
    content
FROM compared;
