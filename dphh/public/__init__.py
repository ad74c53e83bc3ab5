"""Where public knowledge comes from: texts, tables and earlier releases, as priors and lists."""
