-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which numbers users
-- and words and lays out whole users.
-- In: tokens_of_rows (user_id, tokens, group_name). Out: handed (texts), and `users` to be made.
CREATE OR REPLACE TEMP TABLE handed AS
SELECT sum(dphh_gathered(user_id, tokens, group_name)) AS texts
FROM tokens_of_rows;
