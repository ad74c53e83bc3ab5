-- Which messages of a round are accepted. No field of a message is trusted.
-- In: messages (client, round, report, subset). Out: verdicts (subset, verdict).
CREATE TEMP TABLE verdicts AS
WITH

looked_at AS (
    SELECT
        client,
        report,
        subset,
        CASE
            WHEN round IS NULL OR round <> $round THEN 'of another round'
            WHEN client IS NULL OR report IS NULL OR subset IS NULL THEN 'malformed'
            WHEN report < 1 OR report > $contributions THEN 'malformed'
            WHEN len(subset) <> $size THEN 'malformed'
            WHEN list_count(subset) <> len(subset) THEN 'malformed'
            WHEN list_min(subset) < 0 OR list_max(subset) >= $domain THEN 'out of range'
            -- A repeated value would be counted twice.
            WHEN len(list_distinct(subset)) <> len(subset) THEN 'malformed'
            ELSE 'accepted'
        END AS verdict
    FROM messages
)

-- One report counts for each client and report number, however many were sent.
SELECT
    subset,
    CASE
        WHEN verdict = 'accepted' AND row_number() OVER (
            PARTITION BY client, report, verdict
            ORDER BY list_sort(subset)
        ) > 1 THEN 'repeated'
        ELSE verdict
    END AS verdict
FROM looked_at;
