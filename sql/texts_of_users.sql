-- The corpus's texts, all of one user's side by side, for one part in $parts of the users. They are
-- brought together by sorting, which spills, and takes a quarter of the time of hashing into lists.
-- Users who are text are sorted by a hash, which takes half as long (order_of_user); where users of
-- one hash lie mixed, all are sorted anew, $exactly.
-- In: rows_of_corpus (user_id, content, group_name). Out: texts_of_users (place, is_misplaced,
-- is_first, name, group_name, content): places count from 1, and the first text of a user has the
-- user's name; a text has its group, where groups are counted.
CREATE OR REPLACE TEMP TABLE texts_of_users AS
WITH

texts AS (
    SELECT
        user_id,
        content,
        group_name,
        order_of_user(user_id) AS user_order
    FROM rows_of_corpus
    WHERE
        -- What nobody's rows hold is looked up apart (rows_of_nobody.sql).
        user_id IS NOT NULL
        AND hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

side_by_side AS (
    SELECT
        user_id,
        content,
        group_name,
        user_order
    FROM texts
    ORDER BY user_order, CASE WHEN $exactly THEN user_id END
),

neighbours AS (
    SELECT
        row_number() OVER () AS place,
        user_id,
        user_order,
        lag(user_id) OVER () AS user_before,
        lag(user_order) OVER () AS order_before,
        group_name,
        content
    FROM side_by_side
),

-- Where none is misplaced, no user's texts lie apart: orders rise, and users of one order too.
compared AS (
    SELECT
        place,
        user_id,
        (
            order_before > user_order OR (order_before = user_order AND user_before > user_id)
        ) AS is_misplaced,
        (user_before IS DISTINCT FROM user_id) AS is_first,
        group_name,
        content
    FROM neighbours
)

SELECT
    place,
    is_misplaced,
    is_first,
    CASE WHEN is_first THEN CAST(user_id AS VARCHAR) END AS name,
    group_name,
    content
FROM compared;
