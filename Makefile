.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup run test lint types bench fuzz clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: .venv/ready ## make .venv with everything hdlog and its tests need

.venv/ready: pyproject.toml constraints.txt
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "python3 has no venv module: installing Debian's python3-venv"; \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else sudo apt-get update -qq && sudo apt-get install -y -qq python3-venv; fi; fi
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch .venv/ready

run: setup ## check an example program
	$(BIN)/hdlog check examples/family.dlog examples/reach.dl

test: setup ## run all tests
	$(BIN)/python -m pytest -n 2

lint: setup ## check style and formatting
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup ## check types
	$(BIN)/mypy

bench: setup ## time reading and checking a large program
	$(BIN)/python -m benchmarks.parse

fuzz: setup ## a long run of the property tests
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n 2 tests/properties

clean: ## remove what setup and the tests made
	rm -rf .venv build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
