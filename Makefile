# Everything here sets up its own virtual environment first; it needs Python 3.11+, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# A process per core, four at most: each compiles kernels of its own and takes half a gigabyte.
PYTEST = $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test check full bench figures setup-system docs format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## fold a year of flights: rows, codebook, ids
	mkdir -p build
	$(BIN)/vocabfold demo --out build/demo --force

test: $(VENV)/.test ## run the tests, some minutes
	$(PYTEST) -m "not slow and not spark"
	$(BIN)/python -m pytest -m "spark and not slow"

check: $(VENV)/.test ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

full: setup-system test ## + the slow tests (clusters of Spark), the examples with torch, and no compiler
	$(PIP) install torch==2.13.0
	$(BIN)/python -m pytest tests/test_docs.py -k "example"
	VOCABFOLD_FULL=1 $(BIN)/python -m pytest -m slow
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not jit and not spark"

bench: $(VENV)/.bench ## small benchmarks, a minute
	$(BIN)/python -m benchmarks.speed.run --small
	$(BIN)/python -m benchmarks.speed.estimator --small
	$(BIN)/python -m benchmarks.codebook.run --small
	$(BIN)/python -m benchmarks.transform.run --small
	$(BIN)/python -m benchmarks.honest.run --small
	$(BIN)/python -m benchmarks.spark.run --small

figures: $(VENV)/.bench ## the benchmarks at full size, tables and plot, half an hour
	$(BIN)/python -m benchmarks.speed.run
	$(BIN)/python -m benchmarks.speed.report
	$(BIN)/python -m benchmarks.speed.estimator
	$(BIN)/python -m benchmarks.speed.estimator --report
	$(BIN)/python -m benchmarks.codebook.run
	$(BIN)/python -m benchmarks.codebook.run --rows 37000000
	$(BIN)/python -m benchmarks.codebook.report
	$(BIN)/python -m benchmarks.transform.run
	$(BIN)/python -m benchmarks.transform.run --rows 37000000 --repeats 1
	$(BIN)/python -m benchmarks.transform.report
	$(BIN)/python -m benchmarks.spark.run
	$(BIN)/python -m benchmarks.spark.report

setup-system: ## install what tests need beside Python: Java for Spark (Debian's package)
	@if $(PYTHON) tests/java.py; then :; \
	elif command -v apt-get > /dev/null; then $(SUDO) apt-get update -qq && \
	$(SUDO) apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless > /dev/null && \
	$(PYTHON) tests/java.py; \
	else echo "no Java 17 and no apt-get here: install Java 17 or newer, or the tests on Spark are not run"; fi

docs: $(VENV)/.test ## write docs/cli.md from the commands
	$(BIN)/python docs/make_cli.py

format: $(VENV)/.test ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(PIP) install --editable .
	touch $@

$(VENV)/.demo: $(VENV)/.core pyproject.toml
	$(PIP) install --editable '.[demo]'
	touch $@

$(VENV)/.test: $(VENV)/.core pyproject.toml
	$(PIP) install --editable '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.core pyproject.toml
	$(PIP) install --editable '.[bench]'
	touch $@
