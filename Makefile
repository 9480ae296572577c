# Everything happens in .venv, with the exact versions of constraints.txt. `make` alone shows what there is.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# a waiting torch thread must not spin: with two busy processes that costs a factor of two to seven
export OMP_WAIT_POLICY := PASSIVE

.PHONY: help setup demo test test-slow check speed clean

help:  ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY)  ## install everything into .venv

$(READY): pyproject.toml constraints.txt
	@echo "setting up .venv (once, a few minutes) ..."
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet -e '.[dev,spacy,transformers]'
	@touch $(READY)

demo: $(READY)  ## from a corpus and a dictionary to scores and a report: three minutes
	@scripts/demo demo-out

# two processes of one thread each beat one of two
test test-slow: export OMP_NUM_THREADS := 1

test: $(READY)  ## run the tests: a quarter of an hour
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(READY)  ## run the slow tests too
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow or not slow'

check: $(READY)  ## ruff and mypy
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

speed: $(READY)  ## speed ratios against peers, measured in one run
	@$(BIN)/python -m benchmarks.speed

clean:  ## remove what setup and demo made
	rm -rf .venv demo-out
