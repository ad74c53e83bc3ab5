-- What grows on the trie: of the values that stand for a prefix, the $keep that most reports hold;
-- of equals, the first. Sorted by what is released.
SELECT
    value,
    reports
FROM reports
WHERE value < $values AND reports > 0
ORDER BY reports DESC, value ASC
LIMIT $keep;
