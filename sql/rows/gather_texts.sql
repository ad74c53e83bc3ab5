-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which numbers users
-- and words and lays out whole users, and makes the tokens of long texts, some at a time.
-- In: texts_of_corpus (user_id, tokens, group_name, long_text). Out: handed (texts), and `users` to
-- be made.
CREATE OR REPLACE TEMP TABLE handed AS
SELECT sum(dphh_gathered(user_id, tokens, group_name, long_text)) AS texts
FROM texts_of_corpus;
