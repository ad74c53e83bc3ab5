-- The input of all levels: the tokens of each row of the corpus, in order. NULLs and empty tokens
-- are removed, so their neighbours become adjacent. A run refuses rows with a NULL user id.
-- In: tokens_of_rows (user_id, tokens, group_name), as a plan reads the corpus's columns.
-- Out: texts (user_id, tokens, group_name).
CREATE OR REPLACE TEMP TABLE texts AS
SELECT user_id, list_filter(tokens, lambda token: token <> '') AS tokens, group_name
FROM tokens_of_rows
WHERE user_id IS NOT NULL;
