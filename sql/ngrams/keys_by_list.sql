-- Level 1 with a list of words: the key of each word. It is brought to users, and
-- positions_with_list.sql reads it as $keys.
-- In: listed (word, key), public; unlisted_words (word, key), private. Returns (key, value).
SELECT word AS key, key AS value
FROM listed
UNION ALL
SELECT word AS key, key AS value
FROM unlisted_words;
