-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which makes tokens of
-- some texts at a time, numbers users and words, and lays out whole users.
-- In: rows_of_corpus (user_id, content, group_name). Out: handed (texts), and `users` to be made.
CREATE OR REPLACE TEMP TABLE handed AS
SELECT sum(dphh_gathered(user_id, content, group_name)) AS texts
FROM rows_of_corpus;
