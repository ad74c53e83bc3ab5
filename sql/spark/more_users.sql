-- Whether more users hold a sequence than the plan says: then one row, else none. That is all that
-- leaves the executors.
-- In: one_each.
SELECT true AS more
FROM one_each
HAVING count(*) > $users;
