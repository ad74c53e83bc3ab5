-- LDP TrieHH, one level (Gboard, Algorithms 1 and 2): each of the level's users reports the next
-- character of words that begin with a prefix of the trie, randomised on the device. The values in
-- the most reports are kept. Of those that tie for the last places, the first ones are kept; the
-- paper keeps all (docs/ldp_trie.md).
-- In: devices (seat, word, row_count); known (word), words that no longer count; prefixes (number,
-- tokens), of the level below, public; $characters, in order; $seats_before and $last_seat.
-- Out: kept (value, prefix, ended, reports). A value is number * (len($characters) + 1) plus the
-- index of the next character; the largest index means the end of the word.
CREATE OR REPLACE TEMP TABLE kept AS
WITH

held AS (
    SELECT
        devices.seat,
        devices.row_count,
        prefixes.number * (len($characters) + 1) + CASE
            WHEN len(devices.word) = $level THEN len($characters)
            ELSE list_position($characters, devices.word[$level + 1]) - 1
        END AS value
    FROM devices
    INNER JOIN prefixes ON list_slice(devices.word, 1, $level) = prefixes.tokens
    ANTI JOIN known ON devices.word = known.word
    WHERE devices.seat > $seats_before AND devices.seat <= $last_seat
),

next_prefixes AS (
    SELECT seat, value, CAST(sum(row_count) AS BIGINT) AS row_count
    FROM held
    GROUP BY seat, value
),

draws AS MATERIALIZED (
    SELECT
        seat,
        value,
        CASE $sampling WHEN 'greedy' THEN -row_count ELSE 0 END AS rank,
        dphh_word(seat || chr(31) || value, $purpose || '/sample') AS draw
    FROM next_prefixes
),

-- Bound each user to at most $contributions values, by random numbers of the user's own.
chosen AS (
    SELECT
        seat,
        value,
        row_number() OVER (PARTITION BY seat ORDER BY rank, draw, value) AS report
    FROM draws
    QUALIFY report <= $contributions
),

-- Every user sends $contributions reports. The surplus ones say "nothing": a different value in
-- each, so that no user reports a value twice.
due AS (
    SELECT seats.range AS seat, turns.range AS report
    FROM range($seats_before + 1, $last_seat + 1) AS seats, range(1, $contributions + 1) AS turns
),

said AS (
    SELECT
        due.seat,
        due.report,
        coalesce(chosen.value, $domain - $contributions + due.report - 1) AS value
    FROM due
    LEFT JOIN chosen ON due.seat = chosen.seat AND due.report = chosen.report
),

-- Algorithm 1, subset selection: a set of $subset_size values, which contains the user's own value
-- with probability $numerator / 2^64.
messages AS MATERIALIZED (
    SELECT
        dphh_report(
            seat || chr(31) || report,
            value,
            $domain,
            $subset_size,
            CAST($numerator AS DECIMAL(20, 0)),
            $purpose
        ) AS subset
    FROM said
),

reported AS (
    SELECT unnest(subset) AS value
    FROM messages
),

reports AS (
    SELECT value, count(*) AS reports
    FROM reported
    GROUP BY value
)

SELECT
    reports.value,
    reports.reports,
    CASE
        WHEN reports.value % (len($characters) + 1) = len($characters) THEN prefixes.tokens
        ELSE list_append(prefixes.tokens, $characters[reports.value % (len($characters) + 1) + 1])
    END AS prefix,
    reports.value % (len($characters) + 1) = len($characters) AS ended
FROM reports
INNER JOIN prefixes ON reports.value // (len($characters) + 1) = prefixes.number
WHERE reports.reports > 0
ORDER BY reports.reports DESC, reports.value ASC
LIMIT $keep;
