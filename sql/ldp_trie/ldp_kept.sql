-- What the trie gains: of the values that encode a prefix, the $keep in the most reports; the first
-- ones of those that tie. The order uses released columns only.
SELECT
    value,
    reports
FROM reports
WHERE value < $values AND reports > 0
ORDER BY reports DESC, value ASC
LIMIT $keep;
