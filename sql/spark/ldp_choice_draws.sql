-- LDP TrieHH, one level on the devices: the next prefixes that a user holds, with a draw for each,
-- fresh at every level.
-- In: contributions (seat, word, times); known (word); prefixes (prefix, value), those of the level
-- below, and the value of each with character number 0.
-- Out: choice_draws (seat, value, times, draw), drawn once.
CREATE TABLE choice_draws AS
WITH

words AS (
    SELECT
        contributions.seat,
        contributions.word,
        contributions.times
    FROM contributions
    ANTI JOIN known ON contributions.word = known.word
    WHERE contributions.seat > $first_seat AND contributions.seat <= $last_seat
),

next_prefixes AS (
    SELECT
        words.seat,
        prefixes.value + CASE
            WHEN char_length(words.word) = $level THEN $characters
            ELSE ascii(substring(words.word, $level + 1, 1)) - 1
        END AS value,
        words.times
    FROM words
    INNER JOIN prefixes ON substring(words.word, 1, $level) = prefixes.prefix
),

held AS (
    SELECT
        seat,
        CAST(value AS BIGINT) AS value,
        CAST(sum(times) AS BIGINT) AS times
    FROM next_prefixes
    GROUP BY seat, value
)

SELECT
    seat,
    value,
    times,
    dphh_word(seat || chr(31) || value, $purpose || '/sample') AS draw
FROM held;
