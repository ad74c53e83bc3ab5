-- The prefixes that the trie gains (Gboard, Algorithm 2, lines 22 and 23): of the values that
-- encode a prefix, the $keep in the most reports. Of values that tie for the last places, the first
-- ones are kept; if all were, as in the paper, the next level's number of values would depend on
-- the data. The order uses released columns only. Values below $prefix_values encode a prefix.
SELECT value, reports
FROM reports
WHERE value < $prefix_values AND reports > 0
ORDER BY reports DESC, value ASC
LIMIT $keep;
