-- Which of the given items each user holds, for one part in $parts of the users. An item is held
-- where its tokens stand side by side in a text of the user's; which ones do is found text by text
-- (udfs/given_grams.py), so that nothing else of a text is kept.
-- In: tokens_of_rows (user_id, tokens, group_name); declared_groups (group_name, number), and
-- $others for all that is not declared, NULL too. Out: added to counted_users (user_id, keys); a
-- key is the item's number times the number of groups, and the group's.
INSERT INTO counted_users
WITH

texts AS (
    SELECT
        tokens_of_rows.user_id,
        tokens_of_rows.tokens,
        CAST(coalesce(declared_groups.number, $others) AS BIGINT) AS group_number
    FROM tokens_of_rows
    LEFT JOIN declared_groups ON tokens_of_rows.group_name = declared_groups.group_name
    WHERE hash(tokens_of_rows.user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

held AS (
    SELECT
        user_id,
        dphh_given(tokens, group_number) AS keys
    FROM texts
)

SELECT
    user_id,
    flatten(list(keys)) AS keys
FROM held
GROUP BY user_id;
