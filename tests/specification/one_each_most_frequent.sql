-- One sequence a user for the whole run: the one in most of the user's rows, the first of those if
-- several tie. In: texts (user_id, tokens). Out: one_sequence_each (user_id, tokens).
CREATE OR REPLACE TEMP TABLE one_sequence_each AS
SELECT user_id, tokens
FROM texts
WHERE len(tokens) > 0
GROUP BY user_id, tokens
QUALIFY row_number() OVER (
    PARTITION BY user_id
    ORDER BY count(*) DESC, array_to_string(tokens, chr(31)), len(tokens), tokens
) = 1;
