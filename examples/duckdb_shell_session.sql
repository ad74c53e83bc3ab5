-- A session in the stock DuckDB shell: plan a run, make a release of a made-up corpus, look at it.
-- Run it in an empty folder, with dphh installed:
--
--     duckdb -init "$(dphh sql)" < duckdb_shell_session.sql

-- What would an item need, at which budget? And words, and phrases? Prices are plans' own: dphh
-- writes a table of them.
.shell dphh sql --prices prices.parquet --epsilon 0.1 --epsilon 0.3 --epsilon 1 --delta 1e-8 --max-items 20 --length 2

FROM 'prices.parquet' WHERE verb = 'items' AND method = 'gaussian' AND epsilon = 1;
FROM 'prices.parquet' WHERE verb = 'ngrams' AND method = 'forecast' AND epsilon = 1;

-- Is a smaller budget enough for a word that 200 people share?
SELECT
    epsilon,
    users_needed,
    users_needed <= 200 AS enough
FROM 'prices.parquet'
WHERE verb = 'items' AND method = 'gaussian';

-- Messages of 20,000 people, made up here: word N is about 1/N as common as the first, and everyone
-- has a secret of their own.
COPY (
    SELECT
        person AS author,
        string_agg('popular-' || floor(pow(1000, hash(person, turn) / pow(2, 64))), ' ' ORDER BY turn)
        || ' secret-' || person AS body
    FROM range(20000) AS people (person), range(12) AS turns (turn)
    GROUP BY person
    ORDER BY person
) TO 'messages.parquet';

-- The release itself is dphh's work: its noise comes from the operating system, never from SQL.
.shell dphh ngrams messages.parquet --user author --text body --max-n 2 --epsilon 4 --delta 1e-8 --max-items 20 --ledger example.sqlite --out released

CREATE VIEW phrases AS FROM dphh_release_at('released');
SELECT verb, privacy.epsilon, privacy.delta, privacy.unit FROM dphh_manifest_at('released');

FROM dphh_levels('phrases');
FROM dphh_completions('phrases', 'popular-1', most := 5);
FROM dphh_next_words('phrases', ['popular-1']) LIMIT 5;
FROM dphh_children('phrases', prefix := ['popular-1']) LIMIT 5;

-- What a public dictionary lacks.
CREATE TABLE known AS SELECT unnest(['popular-0', 'popular-1', 'popular-2']) AS word;
FROM dphh_new_to('phrases', 'known') LIMIT 5;
