# `make demo` and `make test` do all the set-up they need. Nothing is installed outside .venv.

PYTHON ?= python3
JOBS   ?= 2
SIZE   ?= small
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.upheld-is-set-up
OTHERS := benchmarks/.venv

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all soak soak-spark reliability wheel lint format docs lock bench bench-full table tables findings

help:  ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with the `upheld` command and all that tests need
	@echo "Upheld is set up: $(BIN)/upheld"

demo: $(STAMP)  ## the whole story on Spark: generate, read, derive, update, query (a minute or two)
	@$(BIN)/python -m examples.university.demonstration $(ARGS)

test: $(STAMP)  ## run the tests in about a quarter of an hour (JOBS=2 at a time; ARGS="-k parser" to choose)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)

test-all: $(STAMP)  ## run every test at its full size, also those that take minutes
	UPHELD_TESTS=all $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)

soak: $(STAMP)  ## maintain random programs beside recomputation for a minute, or as long as ARGS="--seconds 600" says
	@$(BIN)/python -m tests.soak $(ARGS)

soak-spark: $(STAMP)  ## the same on Spark, 20,000 updates of a database; then a closure of twelve million facts
	@$(BIN)/python -m tests.engines.spark.soak $(ARGS)
	@$(BIN)/python -m pytest -q -p no:xdist tests/pipeline/soak_closure.py

reliability: $(STAMP)  ## attack the whole of Upheld, a JSON line for each goal (ARGS="R7 --full" to choose and size them)
	@$(BIN)/python -m tests.reliability $(ARGS)

wheel: $(STAMP)  ## build an sdist and a wheel into dist/
	$(BIN)/python -m hatchling build -d dist

lint: $(STAMP)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## lay the code out and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## write the reference pages that are read off the code
	@$(BIN)/python docs/generate.py

lock: $(STAMP)  ## choose anew the versions that development uses (requirements-dev.lock)
	@$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --extra all \
	    --universal --python-version 3.11 --fork-strategy fewest --upgrade --no-annotate \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --quiet --output-file requirements-dev.lock

bench: $(STAMP) $(OTHERS)/.others-are-set-up  ## measure small sizes beside other engines, in about twenty-five minutes
	$(BIN)/python -m benchmarks.run small $(ARGS)

bench-full: $(STAMP) $(OTHERS)/.others-are-set-up  ## measure large sizes, which takes an hour and a half or so
	$(BIN)/python -m benchmarks.run large $(ARGS)

table: $(STAMP)  ## measure a table of the papers beside the printed one (ID=p5-table2, SIZE=small)
	@$(BIN)/python -m experiments run $(ID) --size $(SIZE) $(ARGS)
	@$(BIN)/python -m experiments show $(ID) --size $(SIZE)

tables: $(STAMP)  ## measure all tables of the papers, or go on where an earlier run was stopped (SIZE=small)
	@$(BIN)/python -m experiments run --all --size $(SIZE) $(ARGS)

findings: $(STAMP)  ## write docs/findings.md and all tables and figures from what is measured
	@$(BIN)/python -m experiments report $(ARGS)

# The engines to compare with bring many packages, so they have an environment of their own.
$(OTHERS)/.others-are-set-up: pyproject.toml | $(STAMP)
	@echo "Installing the engines to compare with into $(OTHERS) ..."
	@test -x $(OTHERS)/bin/python || $(BIN)/python -m venv $(OTHERS)
	@$(OTHERS)/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"  # which knows --group
	@$(OTHERS)/bin/python -m pip install --quiet --disable-pip-version-check --group bench
	@touch $@

# A .venv that cannot run pip, left by an interrupted set-up or a Python that has gone, is made anew; any other is kept.
$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Upheld needs Python 3.11 or later; choose one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "Making $(VENV) with $$($(PYTHON) --version) ..."; \
	    $(PYTHON) -m venv --clear $(VENV); \
	fi
	@echo "Installing the packages of requirements-dev.lock into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@echo "Installing upheld itself, in editable mode ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
