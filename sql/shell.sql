-- dphh in a DuckDB shell, without Python: what a saved release holds. Load it with
-- `.read shell.sql` or `duckdb -init shell.sql`, then `FROM dphh_help();`.
--
-- Nothing here draws noise, reads private rows or spends budget. A release is named by a table or
-- view, by its file, 'out/release.parquet', or by its folder with a slash, 'out/'. What runs would
-- cost and find is a table, which `dphh sql --prices FILE` writes.
--
-- One file: a shell loads one, and `.read` looks for a second one in the folder that the shell was
-- started in, not in this one's. `dphh.connect()` loads it too, and then a help of its own.
--
-- For sqlfluff, which takes the parameters of macros for types:
-- noqa: disable=CP05


-- Saved releases ---------------------------------------------------------------------------------

-- The folder that `--out` wrote: level, item, tokens, score; and ended, for `trie`.
CREATE OR REPLACE TEMP MACRO dphh_release_at(folder) AS TABLE
    SELECT * FROM read_parquet(rtrim(folder, '/') || '/release.parquet');  -- noqa: AM04

-- Its manifest, one row: verb, parameters, privacy statement, levels.
CREATE OR REPLACE TEMP MACRO dphh_manifest_at(folder) AS TABLE
    SELECT * FROM read_json(rtrim(folder, '/') || '/release.json');  -- noqa: AM04

-- Every release with what others have: `trie` says what ends, `counts` how many people and within
-- which group, the rest have scores. Counted within groups an item has a row in each.
CREATE OR REPLACE TEMP MACRO dphh_rows(release) AS TABLE
    SELECT *  -- noqa: AM04
    FROM
        query_table(
            -- A path whose last part has no dot is a folder.
            CASE
                WHEN regexp_matches(release, '/[^/.]*$')
                    THEN rtrim(release, '/') || '/release.parquet'
                ELSE release
            END
        )
    UNION ALL BY NAME
    SELECT
        CAST(NULL AS BOOLEAN) AS ended,
        CAST(NULL AS DOUBLE) AS score,
        CAST(NULL AS VARCHAR) AS "group",
        CAST(NULL AS BIGINT) AS users,
        CAST(NULL AS BIGINT) AS low,
        CAST(NULL AS BIGINT) AS high
    WHERE FALSE;

CREATE OR REPLACE TEMP MACRO dphh_levels(release) AS TABLE
    SELECT
        level,
        count(DISTINCT tokens) AS items,
        min(score) AS least_score,
        median(score) AS median_score,
        max(score) AS most_score
    FROM dphh_rows(release)
    GROUP BY level
    ORDER BY level;

-- One step down from a prefix, a list of tokens; [] is the root. `ended`: sequences end there.
CREATE OR REPLACE TEMP MACRO dphh_children(release, prefix := []) AS TABLE
    SELECT
        item,
        "group",
        tokens[-1] AS token,
        bool_or(ended) AS ended,
        max(score) AS score,
        max(users) AS users,
        max(low) AS low,
        max(high) AS high
    FROM dphh_rows(release)
    WHERE
        len(tokens) = len(prefix) + 1
        AND list_slice(tokens, 1, len(prefix)) = CAST(prefix AS VARCHAR[])
    GROUP BY tokens, item, "group"
    ORDER BY score DESC NULLS LAST, max(users) DESC NULLS LAST, item ASC, "group" ASC;

-- Everything at and below a prefix, indented. A score orders what has the same `length`; between
-- lengths it says nothing, and it is no number of people. `users` is one, within `group` if there
-- is one, and from `low` to `high`.
CREATE OR REPLACE TEMP MACRO dphh_tree(release, prefix := []) AS TABLE
    SELECT
        "group",
        repeat('  ', len(tokens) - 1) || tokens[-1] AS tree,
        len(tokens) AS length,
        bool_or(ended) AS ended,
        max(score) AS score,
        max(users) AS users,
        max(low) AS low,
        max(high) AS high
    FROM dphh_rows(release)
    WHERE len(tokens) > 0 AND list_slice(tokens, 1, len(prefix)) = CAST(prefix AS VARCHAR[])
    GROUP BY tokens, "group"
    ORDER BY tokens ASC, "group" ASC;

-- The longest beginning of a sequence, a list of tokens, that was released.
CREATE OR REPLACE TEMP MACRO dphh_longest_prefix(release, sequence) AS TABLE
    SELECT
        item,
        len(tokens) AS length,
        max(score) AS score
    FROM dphh_rows(release)
    WHERE tokens = list_slice(CAST(sequence AS VARCHAR[]), 1, len(tokens))
    GROUP BY item, tokens
    ORDER BY length DESC
    LIMIT 1;

-- What begins as has been typed: short before long, and of one length the highest scores first.
CREATE OR REPLACE TEMP MACRO dphh_completions(release, typed, most := 20) AS TABLE
    SELECT
        item,
        len(tokens) AS length,
        max(score) AS score
    FROM dphh_rows(release)
    WHERE starts_with(item, typed)
    GROUP BY item, length
    ORDER BY length ASC, score DESC NULLS LAST, item ASC
    LIMIT most;

-- What follows a context, a list of tokens, the highest scores first: noised weights, which do not
-- say how often a token follows. Where nothing released goes on from the whole context, its longest
-- ending counts that something goes on from: `after` says which.
CREATE OR REPLACE TEMP MACRO dphh_next_words(release, context) AS TABLE
    WITH

    continuing AS (
        SELECT
            tokens[-1] AS token,
            list_slice(tokens, 1, -2) AS after,
            max(score) AS score
        FROM dphh_rows(release)
        WHERE
            len(tokens) BETWEEN 1 AND len(context) + 1
            AND list_slice(tokens, 1, -2) = list_slice(
                CAST(context AS VARCHAR[]), len(context) + 2 - len(tokens), len(context)
            )
        GROUP BY tokens
    )

    SELECT
        token,
        after,
        score
    FROM continuing
    QUALIFY len(after) = max(len(after)) OVER ()
    ORDER BY score DESC NULLS LAST, token ASC;

-- Which parts of a sequence, a list of tokens, were released: all runs of its tokens, or in a
-- trie its beginnings. `ngrams` looks at a phrase where its parts were released; what has them
-- all and is not there stayed below its threshold, whether many hold it or nobody does.
CREATE OR REPLACE TEMP MACRO dphh_why(release, sequence) AS TABLE
    WITH

    starts AS (
        SELECT
            CAST(sequence AS VARCHAR[]) AS tokens,
            unnest(range(1, len(sequence) + 1)) AS start
    ),

    parts AS (
        SELECT
            start,
            list_slice(tokens, start, unnest(range(start, len(tokens) + 1))) AS part
        FROM starts
    ),

    ends AS (
        SELECT 1
        FROM dphh_rows(release)
        WHERE ended IS NOT NULL
    )

    SELECT
        part,
        len(part) AS length,
        part IN (SELECT tokens FROM dphh_rows(release)) AS released
    FROM parts
    WHERE start = 1 OR NOT EXISTS (FROM ends)
    ORDER BY length, start;

-- Released items with tokens that a public dictionary lacks: a table, view or file with a column
-- `word`. Capitals do not matter.
CREATE OR REPLACE TEMP MACRO dphh_new_to(release, dictionary) AS TABLE
    WITH

    known AS (
        SELECT DISTINCT lower(word) AS word FROM query_table(dictionary)
    ),

    parts AS (
        SELECT
            item,
            level,
            score,
            unnest(tokens) AS token
        FROM dphh_rows(release)
    )

    SELECT
        parts.item,
        parts.level,
        max(parts.score) AS score,
        list(DISTINCT parts.token ORDER BY parts.token) AS unknown
    FROM parts
    ANTI JOIN known ON lower(parts.token) = known.word
    GROUP BY parts.item, parts.level
    ORDER BY parts.level ASC, score DESC NULLS LAST, parts.item ASC;

-- What one release has and another has not, and how scores moved. Both have noise of their own:
-- a small change of score says nothing, and an item near the threshold comes and goes by chance.
CREATE OR REPLACE TEMP MACRO dphh_compare(before, after) AS TABLE
    WITH

    old AS (
        SELECT
            level,
            item,
            tokens,
            max(score) AS score
        FROM dphh_rows(before)
        GROUP BY level, item, tokens
    ),

    new AS (
        SELECT
            level,
            item,
            tokens,
            max(score) AS score
        FROM dphh_rows(after)
        GROUP BY level, item, tokens
    )

    SELECT
        old.score AS score_before,
        new.score AS score_after,
        coalesce(new.level, old.level) AS level,
        coalesce(new.item, old.item) AS item,
        CASE
            WHEN old.level IS NULL THEN 'gained'
            WHEN new.level IS NULL THEN 'lost'
            ELSE 'kept'
        END AS change,
        new.score - old.score AS score_change
    FROM old
    FULL JOIN new ON old.level = new.level AND old.tokens = new.tokens
    ORDER BY coalesce(new.level, old.level), change ASC, coalesce(new.score, old.score) DESC, item;


-- Help -------------------------------------------------------------------------------------------

CREATE OR REPLACE TEMP MACRO dphh_help_on_releases() AS TABLE
    WITH

    macros (call, what) AS (
        VALUES
        ('FROM dphh_release_at(folder)', 'the release that --out wrote to a folder'),
        ('FROM dphh_manifest_at(folder)', 'its manifest: privacy, parameters, levels'),
        ('FROM dphh_levels(release)', 'items and scores of each level'),
        ('FROM dphh_children(release, prefix := [])', 'one step down from a prefix'),
        (
            'FROM dphh_tree(release, prefix := [])',
            'all below a prefix, indented; a release is a table, a view, a file, or a folder with '
            || 'a slash: ''phrases/'''
        ),
        (
            'FROM dphh_longest_prefix(release, sequence)',
            'the longest released beginning of a list of tokens'
        ),
        (
            'FROM dphh_completions(release, typed, most := 20)',
            'what begins as typed, short before long'
        ),
        (
            'FROM dphh_next_words(release, context)',
            'what follows a list of tokens, highest scores first'
        ),
        (
            'FROM dphh_why(release, sequence)',
            'which parts of a list of tokens were released'
        ),
        (
            'FROM dphh_new_to(release, dictionary)',
            'items with tokens that a dictionary (column `word`) lacks'
        ),
        (
            'FROM dphh_compare(before, after)',
            'gained, lost and kept, and how scores moved'
        )
    )

    SELECT
        call,
        what
    FROM macros;

CREATE OR REPLACE TEMP MACRO dphh_help() AS TABLE FROM dphh_help_on_releases();
