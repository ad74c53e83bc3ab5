-- Before the first level. Each level reads the rows of the levels before it, and adds its own.
CREATE OR REPLACE TEMP TABLE released (level INTEGER, tokens VARCHAR[], noisy BIGINT);

CREATE OR REPLACE TEMP TABLE earlier_sums (item VARCHAR, noisy_sum BIGINT);

CREATE OR REPLACE TEMP TABLE trie AS
SELECT 0 AS level, CAST([] AS VARCHAR[]) AS tokens, false AS ended;
