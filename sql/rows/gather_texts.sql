-- Passes every text and its user, in any order, to udfs/kernel/gathering.py, which makes the tokens
-- of long texts, numbers users and words, and brings the texts of each user together.
-- In: texts_of_corpus (user_id, tokens, group_name, long_text). Out: handed (texts), the number of
-- texts. The table `users` is then made of what was gathered.
CREATE OR REPLACE TEMP TABLE handed AS
SELECT sum(dphh_gathered(user_id, tokens, group_name, long_text)) AS texts
FROM texts_of_corpus;
