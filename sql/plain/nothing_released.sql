-- What the levels release. Each level reads the rows of the levels before it, and adds its own.
CREATE OR REPLACE TEMP TABLE released (level INTEGER, tokens VARCHAR[], noisy BIGINT);
