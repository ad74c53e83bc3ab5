-- Which of a list of public keys each user holds.
-- In: texts (user_id, tokens, group_name); asked (key, tokens, group_name), public, one row an item
-- and group; $groups, the declared groups. Rows of other groups belong to the group $other.
-- Out: held (user_id, key), each once.
CREATE OR REPLACE TEMP TABLE held AS
WITH

lengths AS (
    SELECT DISTINCT len(tokens) AS length
    FROM asked
),

-- The runs of tokens of each row. With $beginnings, only those at the start of the row, whose end
-- counts as a token, the empty one.
grams AS (
    SELECT
        texts.user_id,
        CASE WHEN list_contains($groups, texts.group_name) THEN texts.group_name ELSE $other END
            AS group_name,
        list_slice(
            CASE WHEN $beginnings THEN list_append(texts.tokens, '') ELSE texts.tokens END,
            starts.start,
            starts.start + lengths.length - 1
        ) AS tokens
    FROM
        texts,
        lengths,
        unnest(range(1, CASE WHEN $beginnings THEN 2 ELSE len(texts.tokens) + 1 END))
            AS starts (start)
)

SELECT DISTINCT grams.user_id, asked.key
FROM grams
INNER JOIN asked
    ON grams.tokens = asked.tokens AND grams.group_name IS NOT DISTINCT FROM asked.group_name;
