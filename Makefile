# Everything runs in .venv, with the exact versions of constraints.txt. `make` alone lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# waiting torch threads must not spin: with two busy processes that costs a factor of two to seven
export OMP_WAIT_POLICY := PASSIVE

PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet

.PHONY: help setup setup-locked demo test test-unit test-slow test-libraries check docs speed audit sbom clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(READY)  ## install everything into .venv

$(READY): pyproject.toml constraints.txt
	@echo "setting up .venv (once, a few minutes) ..."
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[dev,arrow,onnx,scale,serve,spacy,transformers,xlsx]'
	@touch $(READY)

setup-locked:  ## the same without the extra scale, from files with the hashes of requirements.lock (Linux, x86-64, Python 3.11)
	$(PYTHON) -m venv .venv
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet --require-hashes --no-deps -r requirements.lock
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet --no-deps -e .
	@touch $(READY)

demo: $(READY)  ## from texts and a gazetteer to scores and a report: three minutes
	@scripts/demo demo-out

# two processes with one thread each are faster than one process with two
test test-unit test-slow: export OMP_NUM_THREADS := 1

test: $(READY)  ## all tests that CI runs: about ten minutes on two cores
	@scripts/install_browser
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-unit: $(READY)  ## unit tests and the examples in docstrings: under two minutes
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not integration'

test-slow: $(READY)  ## all tests, also those that take minutes each
	@scripts/install_browser
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow or not slow'

# the libraries of other tools are heavy, and no part of the project
.venv-libraries/.ready: tests/corpus/libraries.txt constraints.txt
	@$(PYTHON) -m venv .venv-libraries
	@PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-libraries/bin/pip install --quiet torch
	@PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-libraries/bin/pip install --quiet -r tests/corpus/libraries.txt
	@touch $@

test-libraries: .venv-libraries/.ready  ## Label Studio's, Argilla's, spaCy's ... libraries read our files, we read theirs; GLiNER is a source
	@LACUNER_TEST_LIBRARIES=1 .venv-libraries/bin/python -m pytest --noconftest -p no:cacheprovider -rs \
		tests/corpus/test_other_libraries.py tests/models/test_gliner_source.py

check: $(READY)  ## ruff and mypy
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

docs: .venv/.docs  ## build the documentation as a static site in build/site
	@$(BIN)/python scripts/generate_docs.py build/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/site/index.html; for the search: $(BIN)/python -m http.server -d build/site"

.venv/.docs: $(READY)
	$(PIP) -e '.[docs]'
	@touch $@

speed: $(READY)  ## speed ratios against peers, measured in one run
	@$(BIN)/python -m benchmarks.speed

# both tools are installed beside the project, not into .venv: they are no part of it
.venv-tools/.ready:
	@$(PYTHON) -m venv .venv-tools
	@PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-tools/bin/pip install --quiet 'pip-audit>=2.9,<3' 'cyclonedx-bom>=7,<8'
	@touch $@

audit: .venv-tools/.ready  ## known vulnerabilities of the exact versions (needs a network)
	@.venv-tools/bin/pip-audit --disable-pip --no-deps -r constraints.txt

sbom: $(READY) .venv-tools/.ready  ## software bill of materials of .venv: build/sbom.json (CycloneDX)
	@mkdir -p build
	@.venv-tools/bin/cyclonedx-py environment --output-reproducible -o build/sbom.json $(BIN)/python
	@echo build/sbom.json

clean:  ## remove what setup, demo and docs made
	rm -rf .venv .venv-tools .venv-libraries demo-out build
