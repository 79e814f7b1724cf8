# Two commands on a fresh machine: `make demo` and `make test`.  Each makes its own virtual
# environment under .venv and installs what it needs; no compiler is asked for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

demo: $(VENV)/.demo  ## the main job: what filters save, on the Unicode character database
	@$(BIN)/lsmkv demo

test: $(VENV)/.test  ## the test suite, doctests included
	$(BIN)/python -m pytest -q

lint: $(VENV)/.lint  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/mypy

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("lsmkv needs Python 3.11 or newer; say make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[tools]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
