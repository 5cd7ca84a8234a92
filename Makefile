# make demo: see it work. make test: what must hold after every change. make test-slow: what takes long and rarely breaks.
# Each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n 2

.PHONY: demo test test-slow test-all lint tests slow-tests jit-off slow-jit-off clean

demo: $(VENV)/plot
	$(BIN)/partwise demo

test: lint tests jit-off

# docs executed, benchmarks at a tiny size, clusters of processes; further lanes of tests are added here
test-slow: slow-tests slow-jit-off

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

tests: $(VENV)/dev
	$(PYTEST) -m "not slow"

slow-tests: $(VENV)/dev
	$(PYTEST) --dist loadfile -m slow

# the same kernels as plain Python: in the tests of the rooms that have kernels, and of those that live on them
KERNELS := projections sets grouped updates constrained_updates sparse_coding
ON_THEM := sparsity statistics data tensor missing start factorize middle stream stream_passes \
	stream_estimator minibatch cp partly recipes rivals rivals_hostile estimators estimators_hostile transform
PLAIN := NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not compiled"
jit-off: $(VENV)/dev
	$(PLAIN) $(KERNELS:%=tests/test_%.py)

slow-jit-off: $(VENV)/dev
	$(PLAIN) $(ON_THEM:%=tests/test_%.py)

# the tests on every supported Python that the machine has
test-all:
	@for version in 3.11 3.12 3.13; do \
		if python$$version -c "" 2>/dev/null; then \
			$(MAKE) tests PYTHON=python$$version VENV=.venv-$$version || exit 1; \
		else \
			echo "python$$version is not here: left out"; \
		fi; \
	done

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
