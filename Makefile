# Everything here sets up its own virtual environment first; it needs Python 3.11+, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
# What vocabfold is measured against holds scikit-learn back, so benchmarks have an environment of their own.
BENCH_VENV ?= $(VENV)-bench
BENCH = $(BENCH_VENV)/bin/python -m benchmarks
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Tests run side by side, and threads of each that spin while they wait would take the cores from the others.
PYTEST = OMP_THREAD_LIMIT=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --durations 15
# A process per core, four at most: each takes half a gigabyte.
PROCESSES = --numprocesses auto --maxprocesses 4 --dist worksteal
# Few of the examples of each law.
FEW = --hypothesis-profile few
# What tries loops that are compiled, in the interpreter.
KERNELS = tests/folding tests/laws tests/codebook tests/encoding/test_order.py tests/common/test_kernels.py

# What `make figures` runs: each leaves marks in build/figures until all are done. DATA=FOLDER has the real tables of
# benchmarks/leakage/data.py, CRITEO=FILE is the challenge's train.txt: without them, generated rows take their place,
# and what needs real ones is left out.
FIGURES = fig-mi-train fig-logloss peers growth scale speed estimator codebook-5m codebook-37m transform-5m \
	transform-37m spark page identified $(if $(DATA),methods leakage order unseen)
# What `make harden` runs: scripts in harden/checks/, whose logs and rows are kept in harden/runs/.
HARDEN = answers leaks overflow crash artefacts memory determinism concurrency hostile fuzz long_run covered mutants supply
DATA_OPTION = $(if $(DATA),--data $(DATA))
CRITEO_OPTION = $(if $(CRITEO),--criteo $(CRITEO))

.DEFAULT_GOAL := help
.PHONY: help demo test check rest full bench figures harden setup-system docs format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## fold a year of flights: rows, codebook, ids, a page to look at
	mkdir -p build
	$(BIN)/vocabfold demo --out build/demo --force

test: $(VENV)/.test ## run the tests, four minutes: every room and every way in, few examples of each law
	@$(call TESTS,not slow and not tools,$(FEW))

check: $(VENV)/.test ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

rest: $(VENV)/.harden ## run all other tests: every example of the laws, clusters, small benchmarks and checks, torch, no compiler
	$(PIP) install torch==2.13.0 'optuna>=4.4'
	@$(call TESTS,slow or tools or law)
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(PROCESSES) -m "not (slow or tools or jit)" $(FEW) $(KERNELS)

full: export VOCABFOLD_FULL = 1
full: setup-system test rest ## run both; Java and a browser must be there

bench: $(BENCH_VENV)/.bench ## small benchmarks, some minutes
	$(BENCH).speed.run --small
	$(BENCH).speed.estimator --small
	$(BENCH).codebook.run --small
	$(BENCH).transform.run --small
	$(BENCH).methods.run --small
	$(BENCH).leakage.run --small
	$(BENCH).leakage.order --small
	$(BENCH).leakage.unseen --small
	$(BENCH).leakage.identified --small
	$(BENCH).spark.run --small
	$(BENCH).figures.fig_mi_train --small
	$(BENCH).figures.fig_logloss --small
	$(BENCH).peers.run --small
	$(BENCH).growth.run --small
	$(BENCH).growth.simulation --small
	$(BENCH).page.run --small

figures: $(FIGURES:%=build/figures/%) ## the benchmarks at full size, hours; stopped, it goes on where it was
	rm -r build/figures

harden: setup-system $(VENV)/.harden ## faults, load and bad input at full size, hours; docs/reliability.md has the results
	@$(call INSTALL,-c "import shutil; raise SystemExit(shutil.which('strace') is None)",strace,strace,that watch calls of the system)
	@failed=; for check in $(HARDEN); do echo "$$check"; $(BIN)/python -m harden.checks.$$check || failed="$$failed $$check"; done; \
	$(BIN)/python -m harden.report; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

setup-system: ## install what tests need beside Python: Java for Spark, Chromium for the report (Debian's packages)
	@$(call INSTALL,tests/support/java.py,openjdk-17-jre-headless,Java 17 or newer,on Spark)
	@$(call INSTALL,tests/support/chromium.py,chromium,Chromium,in a browser)

docs: $(VENV)/.test ## write docs/cli.md from the commands
	$(BIN)/python docs/make_cli.py

format: $(VENV)/.test ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the virtual environments and all caches
	rm -rf $(VENV) $(BENCH_VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Run the tests that an expression of marks selects. Those on Spark run in one process beside all others, which leave
# much of the cores idle; what they print comes at the end. Code 5 says that none was left, as where there is no Java.
define TESTS
mkdir -p build; \
$(BIN)/python tests/support/compiling.py || exit 1; \
$(PYTEST) -m "spark and ($(1))" $(2) > build/spark-tests.txt 2>&1 & spark=$$!; \
trap 'kill $$spark; exit 1' INT TERM; \
$(PYTEST) $(PROCESSES) -m "not spark and ($(1))" $(2); code=$$?; \
wait $$spark; on_spark=$$?; cat build/spark-tests.txt; \
case $$on_spark in 0|5) exit $$code;; *) exit $$on_spark;; esac
endef

# A program that tests need: what finds it, Debian's package, its name, and the tests that it is for.
define INSTALL
if $(PYTHON) $(1); then :; \
elif command -v apt-get > /dev/null; then $(SUDO) apt-get update -qq && \
$(SUDO) apt-get install -y -qq --no-install-recommends $(2) > /dev/null && $(PYTHON) $(1); \
else echo "no $(3) and no apt-get here: install $(3), or the tests $(4) are not run"; fi
endef

# A benchmark of `make figures`: its name, what runs it, and what makes tables and plots of its rows.
define BENCHMARK
build/figures/$(1).run: | $(BENCH_VENV)/.bench
	$(BENCH).$(2)
	@mkdir -p build/figures && touch $$@

build/figures/$(1): build/figures/$(1).run
	$(BENCH).$(3)
	@touch $$@
endef
$(eval $(call BENCHMARK,fig-mi-train,figures.fig_mi_train $(CRITEO_OPTION),figures.fig_mi_train --report))
$(eval $(call BENCHMARK,fig-logloss,figures.fig_logloss $(or $(CRITEO_OPTION),$(DATA_OPTION)),figures.fig_logloss --report))
$(eval $(call BENCHMARK,peers,peers.run $(DATA_OPTION),peers.report))
$(eval $(call BENCHMARK,growth,growth.run,growth.report))
$(eval $(call BENCHMARK,scale,growth.simulation,growth.simulation_report))
$(eval $(call BENCHMARK,speed,speed.run,speed.report))
$(eval $(call BENCHMARK,estimator,speed.estimator,speed.estimator --report))
$(eval $(call BENCHMARK,codebook-5m,codebook.run,codebook.report))
$(eval $(call BENCHMARK,codebook-37m,codebook.run --rows 37000000,codebook.report))
$(eval $(call BENCHMARK,transform-5m,transform.run,transform.report))
$(eval $(call BENCHMARK,transform-37m,transform.run --rows 37000000 --repeats 1,transform.report))
$(eval $(call BENCHMARK,spark,spark.run,spark.report))
$(eval $(call BENCHMARK,page,page.run $(DATA_OPTION),page.run --report))
$(eval $(call BENCHMARK,methods,methods.run $(DATA_OPTION),methods.report))
$(eval $(call BENCHMARK,leakage,leakage.run $(DATA_OPTION),leakage.report))
$(eval $(call BENCHMARK,order,leakage.order $(DATA_OPTION),leakage.order_report))
$(eval $(call BENCHMARK,unseen,leakage.unseen $(DATA_OPTION),leakage.unseen_report))
$(eval $(call BENCHMARK,identified,leakage.identified,leakage.identified --report))

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

$(VENV)/.harden: $(VENV)/.test pyproject.toml
	$(PIP) install --editable '.[harden]'
	touch $@

$(BENCH_VENV)/.bench: BIN = $(BENCH_VENV)/bin
$(BENCH_VENV)/.bench: pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(PIP) install --editable '.[bench]'
	-$(PIP) install torch==2.13.0
	touch $@
