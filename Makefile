# Every target makes its own environment in .venv on first use, and reuses it afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test test-deep test-statistical coverage table1 lint bench bench-scale docs clean

help:
	@echo "make demo              test three ensembles on real data, write demo/report.html"
	@echo "make test              run the tests"
	@echo "make test-deep         run the tests that need PyTorch, on small real data sets"
	@echo "make table1            train the networks of the paper's Table 1 and test them (an hour)"
	@echo "make test-statistical  run the full level and power simulations (an hour)"
	@echo "make coverage          run the tests uncompiled and report coverage"
	@echo "make lint              ruff and mypy"
	@echo "make bench             speed and search quality against named opponents"
	@echo "make bench-scale       time and memory up to ten million rows, and Dask (half an hour)"
	@echo "make docs              build the documentation"

$(VENV)/made: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hullcal needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[test,sklearn]'
	touch $@

$(VENV)/made-deep: $(VENV)/made
	$(INSTALL) -e '.[deep]'
	touch $@

$(VENV)/made-lint: $(VENV)/made
	$(INSTALL) -e '.[lint]'
	touch $@

$(VENV)/made-bench: $(VENV)/made
	$(INSTALL) -e '.[bench]'
	touch $@

$(VENV)/made-docs: $(VENV)/made
	$(INSTALL) -e '.[docs]'
	touch $@

demo: $(VENV)/made
	$(BIN)/hullcal demo

test: $(VENV)/made
	$(BIN)/python -m pytest -q -n auto -m "not statistical and not deep"

test-deep: $(VENV)/made-deep
	$(BIN)/python -m pytest -q -n auto -m deep tests

table1: $(VENV)/made-deep
	$(BIN)/python -m experiments.deep_ensembles

test-statistical: $(VENV)/made
	$(BIN)/python -m pytest -q -n auto -m statistical

# Compiled loops are invisible to coverage, so the fast tests run once more without compilation.
coverage: $(VENV)/made
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n auto -m "not statistical and not deep" --cov --cov-report=term

lint: $(VENV)/made-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/made-bench
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/made-bench
	$(BIN)/python -m benchmarks.scale

docs: $(VENV)/made-docs
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
