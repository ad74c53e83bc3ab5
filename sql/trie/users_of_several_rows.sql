-- The users of several rows, for one part in $parts of the users.
-- In: rows_of_corpus (user_id, content). Out: added to several (user_id).
INSERT INTO several
SELECT user_id
FROM rows_of_corpus
WHERE hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
GROUP BY user_id
HAVING count(*) > 1;
