.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup run quick test test-spark test-no-jit lint types bench bench-trees bench-programs bench-queries bench-paper bench-spark fuzz fuzz-spark crashes mutations ontologies soak clean

help: ## list the targets, with what they take on two cores
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/ready ## make .venv with everything hdlog and its tests need; 2 minutes

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "python3 has no venv module; install it first, on Debian and Ubuntu with: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@echo "compiling the engine's loops for this machine, once; a quarter of a minute"
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m hdlog.operations.prepare
	@touch .venv/ready

run: setup ## materialise two examples: ancestors, siblings and cousins; what is reachable in a graph
	$(BIN)/hdlog run examples/family.dlog examples/more.ttl
	$(BIN)/hdlog run examples/reach.dl -D -

quick: setup ## the tests to run while working: no Spark, few random programs; 2 minutes
	HYPOTHESIS_PROFILE=quick $(PYTEST) -n 2 --dist worksteal -m "not slow" tests

test: setup ## all tests, those of engines once more on Spark and without the compiler; 12 minutes
	$(PYTEST) -n 2 --dist worksteal tests
	$(MAKE) test-spark test-no-jit

test-spark: setup ## the tests of engines and stores on Spark, with some tables in the process, and by Spark Connect; 6 minutes
	HDLOG_TEST_ENGINE=spark HYPOTHESIS_PROFILE=spark $(PYTEST) -n 2 --dist worksteal tests/contract tests/properties/test_maintenance.py tests/unit/test_cases.py tests/unit/test_values.py tests/spark
	HDLOG_TEST_ENGINE=mixed HYPOTHESIS_PROFILE=spark $(PYTEST) -n 2 --dist worksteal tests/contract tests/properties/test_maintenance.py tests/unit/test_store.py tests/unit/test_remote.py
	HDLOG_TEST_ENGINE=connect HYPOTHESIS_PROFILE=spark $(PYTEST) tests/contract tests/spark/test_session.py tests/spark/test_pipeline.py

test-no-jit: setup ## the kernels and some random programs without the compiler; 20 seconds
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=quick $(PYTEST) -n 2 tests/unit/test_kernels.py tests/properties/test_maintenance.py

lint: setup ## check style and formatting; 1 second
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup ## check types; 30 seconds, 5 the second time
	$(BIN)/mypy

bench: setup ## time the parser, and the engine against sorting and DuckDB; 5 minutes
	$(BIN)/python -m hdlog.benchmarks.micro.parse
	$(BIN)/python -m hdlog.benchmarks.micro.embedded

bench-trees: setup ## time decompositions against join plans and DuckDB; 15 minutes
	$(BIN)/python -m hdlog.benchmarks.micro.hypertrees

bench-queries: setup ## SPARQL beside pyoxigraph, and look-ups; 5 minutes
	$(BIN)/python -m hdlog.benchmarks.micro.queries

bench-programs: setup ## the corpus: 18 programs at two sizes by every method, and DuckDB; an hour
	$(BIN)/python -m hdlog.benchmarks.programs.run

bench-paper: setup ## the paper's evaluation at a hundredth of its size, SCALE=1 for all of it; 3 minutes
	$(BIN)/hdlog bench --scale $(or $(SCALE),0.01)

bench-spark: setup ## time the pipeline and the engine on Spark; an hour
	$(BIN)/python -m hdlog.benchmarks.micro.reading
	$(BIN)/python -m hdlog.benchmarks.micro.spark
	$(BIN)/python -m hdlog.benchmarks.micro.spark_scale

fuzz-spark: setup ## many random programs on Spark; hours
	HDLOG_TEST_ENGINE=spark HYPOTHESIS_PROFILE=quick $(PYTEST) tests/contract tests/properties/test_maintenance.py tests/properties/test_histories.py

fuzz: setup ## random programs under random updates against other evaluators; MINUTES=30, SEED=1
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1)

crashes: setup ## kill 1,000 processes that work on a store, at random moments, and 50 with Spark; half an hour
	$(BIN)/python -m tests.crashes --kills 1000
	$(BIN)/python -m tests.crashes --spark 50

ontologies: setup ## real ontologies, out of packages on PyPI, against reasonable and owlrl; 2 minutes
	$(BIN)/python -m tests.real_ontologies

mutations: setup ## 100,000 spoilt files and rule texts of all kinds; INPUTS=100000, SEED=1; 8 minutes
	$(BIN)/python -W ignore -m tests.mutations --inputs $(or $(INPUTS),100000) --seed $(or $(SEED),1)

soak: setup ## small updates on a store with a reader beside them; MINUTES=30
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),30)

clean: ## remove what setup and the tests made
	rm -rf .venv build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
