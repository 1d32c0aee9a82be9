# Everything runs in .venv, made from the lock with whatever PYTHON names: make PYTHON=python3.13 test
# ARGS is passed on: make test ARGS="-k ring -x"

PYTHON ?= python3
FILE ?=
ARGS ?=
SECONDS ?= 20
MINUTES ?= 10
TARGETS ?=
RUNS ?= 100000
PAGE ?= docs/performance.md

VENV := .venv
BIN := $(VENV)/bin
SETUP_STAMP := $(VENV)/.setup-done
FUZZ_STAMP := $(VENV)/.fuzz-done
# Takes nothing that is not in the lock, also not to build with: what is built uses the setuptools that is there. Of what
# comes most is never imported, and so not compiled.
LOCKED := $(BIN)/python -m pip install --quiet --require-hashes --no-build-isolation --no-compile
IS_COMPILED := import sys; from skywalker import build; sys.exit(not build.COMPILED)
HAS_HEADERS := import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))

# The core, and what has a .pxd beside it, is compiled, and must be again when it changes.
HEADERS := $(shell find skywalker workers -name '*.pxd')
CORE := $(filter-out workers/core/_core.c,$(wildcard workers/core/*.[ch])) $(wildcard workers/core/*.py[xi])
COMPILED := $(patsubst %.pxd,%.py,$(filter-out workers/core/%,$(HEADERS))) $(CORE)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help setup wheel tools demo demo-cluster demo-pipeline test lint format faces lives bench measure bench-save bench-compare simulate simulate-silk chaos soak fuzz fuzz-asan audit lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(SETUP_STAMP) ## Make .venv from the lock, if it is not up to date

wheel: setup ## Build a wheel in dist/, which needs no compiler where it is installed
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/skywalker-*-cp*.whl || { echo "it could not be compiled; $(BIN)/python setup.py build_ext --inplace shows why" >&2; exit 1; }

tools: ## Get what the tests need besides Python: Consul (into .tools), a DNS server, Java, Redis
	@.ci/tools

demo: setup ## Start a node and stream a text file through it (FILE=path)
	$(BIN)/skywalker demo $(if $(FILE),"$(FILE)") $(ARGS)

demo-pipeline: setup ## Watch Spark study a node's traffic, and count words as they stream by; needs Java (FILE=path)
	@.ci/tools java
	$(BIN)/skywalker demo-pipeline $(if $(FILE),"$(FILE)") $(ARGS)

demo-cluster: setup ## Watch a cluster while its nodes come and go (FILE=path)
	PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/skywalker demo-cluster $(if $(FILE),"$(FILE)") $(ARGS)

test: setup ## Run every test, or with ARGS="tests/wire -x" in one go what it names
	@.ci/tools || echo "the tests go on without, and say what they skip" >&2
	$(if $(ARGS),$(BIN)/python -m pytest $(ARGS),.ci/parts)

lint: setup ## Check style, formatting, types, and what is made from other code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/faces --check
	$(BIN)/python .ci/lives --check

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

faces: setup ## Make the blocking clients from those for asyncio
	$(BIN)/python .ci/faces

lives: setup ## Show the tables of lives as pictures in docs/architecture.md
	$(BIN)/python .ci/lives

bench: setup ## Run the micro benchmarks, then nodes with 1 to 8 workers
	$(BIN)/python -m pytest bench --benchmark-only --timeout=0
	$(BIN)/python -m bench.scaling $(ARGS)

measure: setup ## Measure a release against its targets, into docs/performance.md: 45 quiet minutes (ARGS=--quick shows that it works)
	@set -eu; trap '$(BIN)/python setup.py -q build_ext --inplace' EXIT; \
	SKYWALKER_ASSERTIONS=0 $(BIN)/python setup.py -q build_ext --inplace; \
	$(BIN)/python -m bench.peers --markdown $(PAGE) --markdown README.md --plot docs/peers.svg $(ARGS); \
	for each in scaling fanout tls journal scraping; do $(BIN)/python -m bench.$$each --markdown $(PAGE) $(ARGS); done; \
	$(BIN)/skywalker-bench idle --start 1 --connections 10000 --calls 100 --markdown $(PAGE); \
	$(BIN)/skywalker-bench idle --start 2 --connections 10000 --calls 100 --forwarded --markdown $(PAGE); \
	$(BIN)/python -m bench.growth --markdown $(PAGE) --plot docs/growth.svg $(ARGS)

bench-save: setup ## Save the times of the micro benchmarks
	$(BIN)/python -m bench.micro save $(ARGS)

bench-compare: setup ## Show what has changed since they were saved
	$(BIN)/python -m bench.micro compare $(ARGS)

chaos: setup ## Kill, stop, reload, drain and part workers and nodes under load, each for a time (SECONDS=20)
	SKYWALKER_CHAOS_SECONDS=$(SECONDS) $(BIN)/python -m pytest tests/chaos -s --timeout=0 $(ARGS)

soak: setup ## Use and hit nodes for a long time: has anything grown? (MINUTES=10 ARGS="--tls")
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(ARGS)

simulate: MINUTES =
simulate: setup ## Run whole clusters on a virtual clock, from fresh seeds (SEEDS=100 MINUTES=10 SEED=4711 ARGS=--all)
	$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

simulate-silk: MINUTES =
simulate-silk: setup ## The same with clusters of Silk (SEEDS=100 MINUTES=10 SEED=4711)
	$(BIN)/python -m tests.simulation.silk_run $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(MINUTES),--minutes $(MINUTES))

fuzz: SECONDS = 60
fuzz: setup ## Have atheris attack each decoder and door for a time (SECONDS=60 TARGETS="session mesh")
	@$(MAKE) --no-print-directory $(FUZZ_STAMP) || { \
		echo "without atheris there is still: $(BIN)/python -m tests.fuzz --mutate 100000" >&2; exit 1; }
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(TARGETS) $(ARGS)

fuzz-asan: setup ## The same for the compiled modules, under AddressSanitizer (TARGETS="session" RUNS=100000)
	tests/fuzz/asan.sh $(RUNS) $(TARGETS)

audit: setup ## Look for known holes in what skywalker loads, or list it with reasons
	@$(BIN)/python .ci/audit

# A fresh environment takes the newest versions that pyproject.toml allows; what it then holds is the lock. pip knows the
# hashes of the files that it took, uv those of every file of a version, also for other machines and other Pythons.
lock: ## Renew the exact versions in requirements/, and the hashes of their files
	@set -eu; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch/uv"; \
	"$$scratch/uv/bin/python" -m pip install --quiet uv; \
	for extra in dev fuzz; do \
		$(PYTHON) -m venv "$$scratch/$$extra"; \
		"$$scratch/$$extra/bin/python" -m pip install --quiet --upgrade setuptools; \
		"$$scratch/$$extra/bin/python" -m pip install --quiet --editable ".[$$extra]"; \
		"$$scratch/$$extra/bin/python" -m pip freeze --all --exclude pip --exclude skywalker > "$$scratch/$$extra.in"; \
		{ echo "# Made by 'make lock' from the '$$extra' extra in pyproject.toml; do not edit."; \
		  "$$scratch/uv/bin/uv" pip compile --quiet --python "$$scratch/$$extra" --generate-hashes --no-deps --no-header \
			--no-annotate "$$scratch/$$extra.in"; } > "$$scratch/$$extra.txt"; \
	done; \
	cp "$$scratch"/*.txt requirements/

clean: ## Remove .venv and everything that was generated
	rm -rf $(VENV) .audit .tools build dist *.egg-info .benchmarks .fuzz .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(SETUP_STAMP): pyproject.toml setup.py requirements/dev.txt $(HEADERS) $(COMPILED)
	@command -v $(PYTHON) >/dev/null || { \
		echo "there is no '$(PYTHON)' here; install Python 3.11 or newer, or name one: make PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c '$(SUPPORTED)' || { \
		echo "skywalker needs Python 3.11 or newer, '$(PYTHON)' is $$($(PYTHON) --version 2>&1); name another: make PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o DPkg::Lock::Timeout=300 python3-venv; \
		else \
			echo "'$(PYTHON)' cannot make virtual environments; install its venv module, on Debian: apt-get install python3-venv" >&2; exit 1; \
		fi; }
	@command -v $${CC:-cc} >/dev/null && $(PYTHON) -c '$(HAS_HEADERS)' || { \
		package=$$($(PYTHON) -c 'import sys; print("python{}.{}-dev".format(*sys.version_info))'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o DPkg::Lock::Timeout=300 gcc libc6-dev $$package; \
		else \
			echo "there is no C compiler, or no Python.h; install both, on Debian: apt-get install gcc libc6-dev $$package" >&2; exit 1; \
		fi; }
	@$(BIN)/python -c 'import pip; $(SUPPORTED)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV) what requirements/dev.txt names, and compiling the core and the hot modules: a minute or two"
	@sed -En '/^(setuptools|cython)==/,/[^\\]$$/p' requirements/dev.txt | $(LOCKED) --requirement /dev/stdin
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . & compiling=$$!; \
		$(LOCKED) --requirement requirements/dev.txt; installed=$$?; wait $$compiling && exit $$installed
	@$(BIN)/python -c '$(IS_COMPILED)' || { \
		echo "skywalker could not be compiled; $(BIN)/python setup.py build_ext --inplace shows why" >&2; exit 1; }
	@touch $@

$(FUZZ_STAMP): requirements/fuzz.txt $(SETUP_STAMP)
	$(LOCKED) --requirement requirements/fuzz.txt
	@touch $@
