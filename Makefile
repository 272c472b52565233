.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup run test lint types bench bench-trees bench-paper bench-spark fuzz fuzz-spark clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/ready ## make .venv with everything hdlog and its tests need

.venv/ready: pyproject.toml constraints.txt
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "python3 has no venv module: installing Debian's python3-venv"; \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else sudo apt-get update -qq && sudo apt-get install -y -qq python3-venv; fi; fi
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch .venv/ready

run: setup ## materialise an example: who is whose ancestor, sibling and cousin
	$(BIN)/hdlog run examples/family.dlog examples/more.ttl
	$(BIN)/hdlog run examples/reach.dl -D -

test: setup ## run all tests, those of engines once more on Spark and without the compiler
	$(BIN)/python -m pytest -n 2
	HDLOG_TEST_ENGINE=spark HYPOTHESIS_PROFILE=spark $(BIN)/python -m pytest tests/contract tests/properties/test_maintenance.py tests/unit/test_store.py tests/spark
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n 2 tests/unit/test_kernels.py tests/properties/test_maintenance.py

lint: setup ## check style and formatting
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup ## check types
	$(BIN)/mypy

bench-trees: setup ## time decompositions against join plans and DuckDB; about 15 minutes
	$(BIN)/python -m hdlog.benchmarks.micro.hypertrees

bench: setup ## time the parser, and the engine against sorting and DuckDB
	$(BIN)/python -m hdlog.benchmarks.micro.parse
	$(BIN)/python -m hdlog.benchmarks.micro.embedded

bench-paper: setup ## the paper's evaluation at a hundredth of its size; SCALE=1 for all of it
	$(BIN)/hdlog bench --scale $(or $(SCALE),0.01)

bench-spark: setup ## time the pipeline and the engine on Spark; about an hour
	$(BIN)/python -m hdlog.benchmarks.micro.reading
	$(BIN)/python -m hdlog.benchmarks.micro.spark

fuzz-spark: setup ## many random programs on Spark; hours
	HDLOG_TEST_ENGINE=spark HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest tests/contract tests/properties/test_maintenance.py

fuzz: setup ## 50,000 random programs under random updates; about half an hour
	$(BIN)/python -m tests.fuzz --programs 50000

clean: ## remove what setup and the tests made
	rm -rf .venv build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
