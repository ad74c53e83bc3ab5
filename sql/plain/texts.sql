-- What all levels read: the tokens of each row of the corpus, in their order. NULL and the empty
-- token are none: what stands around them is side by side. Rows of nobody are refused by a run.
-- In: tokens_of_rows (user_id, tokens, group_name), as a plan reads the corpus's columns.
-- Out: texts (user_id, tokens, group_name).
CREATE OR REPLACE TEMP TABLE texts AS
SELECT
    user_id,
    list_filter(tokens, lambda token: token <> '') AS tokens,
    group_name
FROM tokens_of_rows
WHERE user_id IS NOT NULL;
