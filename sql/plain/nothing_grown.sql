-- The trie before its first level: the root alone.
CREATE OR REPLACE TEMP TABLE trie AS
SELECT
    0 AS level,
    CAST([] AS VARCHAR[]) AS tokens,
    false AS ended;
