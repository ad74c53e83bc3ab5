# Each target does its own set-up: Python 3.11+ and make are all a machine needs.
PYTHON ?= python3
VENV := .venv
VENV_15 := .venv-duckdb15
VENV_LOWEST := .venv-lowest
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-spark test-all test-duckdb15 test-lowest test-extras mutants lint format generated docs wheel-demo bench clean

# pip says nothing of its own version, nor of who runs it.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# Tests start some hundred processes, and each target some more: none compiles dphh anew.
unexport PYTHONDONTWRITEBYTECODE

# What dphh itself needs is enough, and takes a fifth of the time that all of the tests' needs take.
demo: $(VENV)/core
	$(BIN)/dphh demo

# A test that waits for what never comes is ended, with the stacks of all its threads.
LIMITED := --timeout=300
# Each test is in one of three lines: docs/architecture.md says which.
QUICK := not slow and not published and not spark

# Three at a time on two cores, as those of the gateway wait.
test: $(VENV)/ready
	$(BIN)/python -m pytest -m "$(QUICK)" -n 3 --dist worksteal $(LIMITED) $(ARGS)

# Long statistics, kills by the dozen, memory limits, examples in full, the papers' tables.
test-slow: $(VENV)/ready
	$(BIN)/python -m pytest -m "(slow or published) and not spark" $(LIMITED) $(ARGS)

# In one process, for one Java: on Spark, a release a verb and what Spark alone has.
test-spark: $(VENV)/ready
	$(BIN)/python -m pytest -m spark $(LIMITED) $(ARGS)

# Every test on every engine with all its counts: hours.
test-all: $(VENV)/ready
	DPHH_FULL=1 $(BIN)/python -m pytest --engines duckdb,polars,spark --durations=50 $(ARGS)

# The long-term line of DuckDB, beside the current one that `make test` uses: what can differ, which
# one file lists, and an analyst's DuckDB shell over the gateway and other people's tools, which
# need this line.
OLDER := tests/engines/test_duckdb_versions.py tests/gateway/test_shell.py \
	tests/engines/test_other_tools.py
test-duckdb15: $(VENV_15)/ready
	$(VENV_15)/bin/python -m pytest -m "$(QUICK)" --engines duckdb,polars -n 2 --dist worksteal \
		$(LIMITED) $(OLDER) $(ARGS)

# Versions that are said are versions that work: the lowest of each that pyproject.toml names, and
# the tests that ask most of them: the command line, sources, reading, and what Polars lacked once.
LOWEST := tests/unit/test_cli.py tests/engines/test_which_rows.py tests/engines/test_sources.py \
	tests/engines/test_counts.py tests/engines/test_tries.py
test-lowest: $(VENV_LOWEST)/ready
	$(VENV_LOWEST)/bin/python -m pytest -m "$(QUICK)" $(LIMITED) \
		-k "not bench and not demo and not terminal" \
		$(LOWEST) $(ARGS)

# Each extra of the wheel alone, in an environment of its own, does what it is for.
test-extras: $(VENV)/ready
	$(BIN)/python tests/each_extra.py $(ARGS)

# Mistakes planted on purpose, each in a copy of the tree: the tests must catch every one. Run it
# before a release. `make mutants ARGS=noise` takes those with a word in the name.
mutants: $(VENV)/ready
	$(BIN)/python -m tests.mutants $(ARGS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint sql tests/specification
	tests/typecheck $(BIN)/python

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What is made from the registry of verbs and committed: docs/options.md, dphh/asking/frames.pyi.
generated: $(VENV)/ready
	$(BIN)/python docs/building/write.py

# The site, into build/site: without a network, and with broken links as errors.
docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# As a stranger gets it: a wheel, installed into a clean environment, run in an empty folder.
wheel-demo: $(VENV)/ready
	tests/wheel-demo $(BIN)/python

# Time and memory, beside exact counts: `make bench ARGS="text --size 100_000_000"` takes some rows.
bench: $(VENV)/ready
	$(BIN)/python -m tests.benchmarks.bench $(ARGS)

$(VENV)/core: pyproject.toml
	@echo "Installing dphh and what it needs into $(VENV) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/ready: pyproject.toml | $(VENV)/core
	@echo "Installing what tests, lint and docs need into $(VENV): once, some minutes and GB ..."
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

$(VENV_15)/ready: pyproject.toml
	@echo "Installing the same with DuckDB's long-term line into $(VENV_15) ..."
	$(PYTHON) -m venv $(VENV_15)
	$(VENV_15)/bin/python -m pip install --quiet -e '.[dev]' duckdb==1.5.5 \
		duckdb-cli==1.5.5 duckdb-extension-httpfs==1.5.5 \
		duckdb-engine 'ibis-framework[duckdb]'
	touch $@

$(VENV_LOWEST)/ready: pyproject.toml
	@echo "Installing the lowest versions that pyproject.toml names into $(VENV_LOWEST) ..."
	$(PYTHON) -m venv $(VENV_LOWEST)
	$(PYTHON) tests/wheel_contents.py --oldest . >$(VENV_LOWEST)/lowest.txt
	$(VENV_LOWEST)/bin/python -m pip install --quiet --constraint $(VENV_LOWEST)/lowest.txt \
		-e '.[testing]' pytest pytest-timeout hypothesis
	touch $@

clean:
	rm -rf $(VENV) $(VENV_15) $(VENV_LOWEST) build dist *.egg-info
