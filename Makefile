# Every target makes its own environment in .venv on first use, and reuses it afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# A process that stands still on one test for ten minutes says where, and ends; the test has failed.
# Hypothesis draws the same examples in every run here; pytest by itself draws new ones.
BOUNDED := --hypothesis-seed=0 -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

.PHONY: help demo test test-deep test-statistical test-supply test-oldest test-newest fuzz hardening
.PHONY: coverage mutation table1 lint bench bench-scale docs docs-figures golden clean

help:
	@echo "make demo              test three ensembles on real data, write demo/report.html"
	@echo "make test              run the tests"
	@echo "make test-deep         run the tests that need PyTorch, on small real data sets"
	@echo "make table1            train the networks of the paper's Table 1 and test them (an hour)"
	@echo "make test-statistical  run the full level and power simulations (an hour)"
	@echo "make coverage          run the tests, compiled and not, and report coverage (an hour)"
	@echo "make lint              ruff and mypy"
	@echo "make bench             speed and search quality against named opponents"
	@echo "make bench-scale       time and memory up to ten million rows, and Dask (half an hour)"
	@echo "make docs              build the documentation, with its gallery"
	@echo "make docs-figures      draw the architecture and the report for the documentation"
	@echo "make fuzz              try 20,000 damaged files, senseless commands and odd sets"
	@echo "make hardening         fail every write, kill studies 50 times, run 10,000 tests in one process"
	@echo "make test-supply       build wheel and sdist, install each in an empty environment, use it"
	@echo "make test-oldest       run the tests with the oldest packages allowed (test-newest: the newest)"
	@echo "make mutation          change the code in 500 places, and see whether tests notice"
	@echo "make golden            say which of the stored numbers have changed"

$(VENV)/made: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hullcal needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip # --group needs 25.1
	$(INSTALL) -e . --group test
	touch $@

$(VENV)/made-deep: $(VENV)/made
	$(INSTALL) -e '.[deep]'
	touch $@

$(VENV)/made-lint: $(VENV)/made
	$(INSTALL) --group lint
	touch $@

$(VENV)/made-bench: $(VENV)/made
	$(INSTALL) --group bench
	touch $@

$(VENV)/made-docs: $(VENV)/made
	$(INSTALL) --group docs
	touch $@

demo: $(VENV)/made
	$(BIN)/hullcal demo --force

test: $(VENV)/made
	$(BIN)/python -m pytest -q -n auto $(BOUNDED) -m "not statistical and not deep"

test-deep: $(VENV)/made-deep
	$(BIN)/python -m pytest -q -n auto $(BOUNDED) -m deep tests

table1: $(VENV)/made-deep
	$(BIN)/python -m experiments.deep_ensembles

test-statistical: $(VENV)/made
	$(BIN)/python -m pytest -q -n auto -m statistical

# Compiled loops are invisible to coverage, so the tests that are about them run once more without
# compilation, each for as long as tests/uncompiled_limit.py allows.
LOOPS := measures measure_contract nulls stacked entries loop chunked drawn_rows streams simplex kernels \
	uncertainty minimizers
COVERED := $(BIN)/python -m pytest -q -n auto $(BOUNDED) --cov --cov-append --cov-fail-under=0 --cov-report=
coverage: $(VENV)/made-deep
	rm -f .coverage
	$(COVERED) -m "not statistical and not deep"
	$(COVERED) -m deep tests/test_ensembles_torch.py tests/test_validation.py tests/test_preparation.py
	NUMBA_DISABLE_JIT=1 PYTHONPATH=tests $(COVERED) -p uncompiled_limit \
		-m "not statistical and not deep" -k "not uncompiled" \
		$(LOOPS:%=tests/test_%.py)
	$(BIN)/python -m coverage report

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

docs-figures: $(VENV)/made
	$(BIN)/python docs/architecture_figure.py
	$(BIN)/python docs/report_figures.py
	$(BIN)/python docs/index_figure.py
	$(BIN)/python docs/shown_tables.py
	$(BIN)/python -m docs.choosing_figures

fuzz: $(VENV)/made
	cd tests && ../$(BIN)/python -m fuzzing --inputs 20000 --seed 0

hardening: $(VENV)/made-deep
	cd tests && ../$(BIN)/python -m hardening faults
	cd tests && ../$(BIN)/python -m hardening kills --times 50 --run simulate --signal SIGKILL
	cd tests && ../$(BIN)/python -m hardening kills --times 50
	cd tests && ../$(BIN)/python -m hardening soak --tests 10000

test-supply: $(VENV)/made-lint
	$(BIN)/python tests/supply/distribution.py

test-oldest test-newest: $(VENV)/made
	$(BIN)/python tests/supply/environments.py $(@:test-%=%)

mutation: $(VENV)/made
	$(INSTALL) cosmic-ray==8.7.0
	cd tests && ../$(BIN)/python -m mutation --sample 500 --seed 0

golden: $(VENV)/made
	$(BIN)/python tests/golden/make_golden.py

clean:
	rm -rf $(VENV) docs/_build docs/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis
