# make demo: see it work. make test: everything that must hold. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint tests jit-off least clean

demo: $(VENV)/plot
	$(BIN)/partwise demo

test: lint tests jit-off

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

tests: $(VENV)/dev
	$(BIN)/pytest -n 2

# the same kernels as plain Python, in the tests of the rooms that have kernels or live on them
PLAIN := compiled projections sets sparsity grouped statistics updates constrained_updates sparse_coding data tensor \
	missing start factorize middle stream stream_passes stream_estimator minibatch cp partly recipes rivals \
	rivals_hostile estimators estimators_hostile transform
jit-off: $(VENV)/dev
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -m "not heavy" $(PLAIN:%=tests/test_%.py)

# the tests on every supported Python that the machine has
test-all:
	@for version in 3.11 3.12 3.13; do \
		if python$$version -c "" 2>/dev/null; then \
			$(MAKE) tests PYTHON=python$$version VENV=.venv-$$version || exit 1; \
		else \
			echo "python$$version is not here: left out"; \
		fi; \
	done

# the oldest Python and the least versions that pyproject.toml declares; matplotlib's least calls pyparsing by old names
LEAST := estimators estimators_hostile transform imports projections sets sparsity rivals cp selection saved archive io \
	io_hostile known_files stored stored_hostile cluster cells brain plotting download
least:
	$(MAKE) .venv-least/least PYTHON=python3.11 VENV=.venv-least
	.venv-least/bin/pytest -n 2 -W ignore::pyparsing.warnings.PyparsingDeprecationWarning $(LEAST:%=tests/test_%.py)

$(VENV)/least: $(VENV)/made pyproject.toml tests/least.py
	$(BIN)/python tests/least.py > $(VENV)/least.txt
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/least.txt --editable ".[test]"
	touch $@

$(VENV)/made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Partwise needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/plot: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
