-- What levels release, one after the other: each reads what those before it did.
CREATE OR REPLACE TEMP TABLE released (level INTEGER, tokens VARCHAR[], noisy BIGINT);
