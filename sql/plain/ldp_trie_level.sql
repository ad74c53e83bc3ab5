-- LDP TrieHH, one level (Gboard, Algorithms 1 and 2): each of the level's users reports what comes
-- next of words whose first tokens are a prefix of the trie, randomised on the device; the values
-- that most reports hold go on.
-- In: devices (seat, word, times); known (word), what counts no more; prefixes (number, tokens),
-- those of the level below, public. $characters, in their order; $first_seat and $last_seat.
-- Out: kept (value, prefix, ended, reports). A value is the prefix's number times one more than
-- there are characters, and the character's; the last one is the word's end.
CREATE OR REPLACE TEMP TABLE kept AS
WITH

held AS (
    SELECT
        devices.seat,
        devices.times,
        prefixes.number * (len($characters) + 1) + CASE
            WHEN len(devices.word) = $level THEN len($characters)
            ELSE list_position($characters, devices.word[$level + 1]) - 1
        END AS value
    FROM devices
    INNER JOIN prefixes ON list_slice(devices.word, 1, $level) = prefixes.tokens
    ANTI JOIN known ON devices.word = known.word
    WHERE devices.seat > $first_seat AND devices.seat <= $last_seat
),

next_prefixes AS (
    SELECT
        seat,
        value,
        CAST(sum(times) AS BIGINT) AS times
    FROM held
    GROUP BY seat, value
),

lots AS MATERIALIZED (
    SELECT
        seat,
        value,
        CASE $sampling WHEN 'greedy' THEN -times ELSE 0 END AS rank,
        dphh_word(seat || chr(31) || value, $purpose || '/sample') AS lot
    FROM next_prefixes
),

-- Bound each user: at most $contributions of them, by a lot that is the user's own.
chosen AS (
    SELECT
        seat,
        value,
        row_number() OVER (PARTITION BY seat ORDER BY rank, lot, value) AS report
    FROM lots
    QUALIFY report <= $contributions
),

-- Every user sends as many reports: "nothing" where there is no more, another value in each
-- report, so that no user reports a value twice; with coins it is no value (-1).
due AS (
    SELECT
        seats.range AS seat,
        turns.range AS report
    FROM range($first_seat + 1, $last_seat + 1) AS seats, range(1, $contributions + 1) AS turns
),

said AS (
    SELECT
        due.seat,
        due.report,
        coalesce(
            chosen.value,
            CASE
                WHEN $nothings > 0 THEN $domain - $nothings + least(due.report, $nothings) - 1
                ELSE -1
            END
        ) AS value
    FROM due
    LEFT JOIN chosen ON due.seat = chosen.seat AND due.report = chosen.report
),

-- Algorithm 1, subset selection: a set of $size values, the own one among them with probability
-- $numerator / 2^64; or, by $form 'coins', each value by a coin of its own.
messages AS MATERIALIZED (
    SELECT
        dphh_report(
            seat || chr(31) || report,
            value,
            $domain,
            $size,
            CAST($numerator AS UBIGINT),
            $form,
            $purpose
        ) AS subset
    FROM said
    WHERE $mode = 'messages'
),

votes AS (
    SELECT unnest(subset) AS value
    FROM messages
),

-- Or, where reports are only counted, how many hold each value is drawn at once, of all that the
-- level has but "nothing" (docs/ldp_trie.md).
holders AS (
    SELECT
        domain.range AS value,
        count(said.value) AS holders
    FROM range($domain - $nothings) AS domain
    LEFT JOIN said ON domain.range = said.value
    WHERE $mode = 'aggregate'
    GROUP BY domain.range
),

drawn AS MATERIALIZED (
    SELECT
        list(value ORDER BY value) AS domain,
        dphh_aggregate(
            list(holders ORDER BY value),
            ($last_seat - $first_seat) * $contributions,
            $domain,
            $size,
            CAST($numerator AS UBIGINT),
            $purpose
        ) AS reports
    FROM holders
    HAVING count(*) > 0
),

reports AS (
    SELECT
        value,
        count(*) AS reports
    FROM votes
    GROUP BY value
    UNION ALL
    SELECT
        unnest(domain) AS value,
        unnest(reports) AS reports
    FROM drawn
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
