# Two commands on a fresh machine: `make demo` and `make test`.  Each makes its own virtual
# environment under .venv and installs what it needs; no compiler is asked for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := .venv-compiled

.PHONY: demo test test-compiled test-browser lint clean

demo: $(VENV)/.demo  ## the main job: what filters save, on the Unicode character database
	@$(BIN)/lsmkv demo

test: $(VENV)/.test  ## the test suite, doctests included
	LSMKV_EXPECT_COMPILED=0 $(BIN)/python -m pytest -q

test-compiled: $(COMPILED)/.made  ## the suite against the package as compiled by mypyc (needs a C compiler)
	LSMKV_MYPYC=1 $(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check '.[test]'
	LSMKV_EXPECT_COMPILED=1 PYTHONSAFEPATH=1 $(COMPILED)/bin/pytest -q tests

test-browser: $(VENV)/.test  ## reads what Chromium writes (needs chromium; LSMKV_CHROMIUM names another)
	$(BIN)/python -m pytest -q --log-cli-level=INFO browser

lint: $(VENV)/.lint  ## ruff; mypy --strict; mypy and pyright on a file that uses everything
	$(BIN)/ruff check .
	$(BIN)/mypy lsmkv tests/typing/uses_everything.py
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright -p pyproject.toml --pythonpath $(BIN)/python

%/.made:
	@$(PYTHON) -c 'import sys; sys.exit("lsmkv needs Python 3.11 or newer; say make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $*
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
	rm -rf $(VENV) $(COMPILED) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
