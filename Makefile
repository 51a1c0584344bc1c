# Vidrio from a fresh machine with Python 3.11+ and make:   make hello   make test
# Variables: PYTHON (which Python), VENV and VENV_TEST (where to install), TEXT (what to translate), WORKERS (for tests);
# DATA, WORK, DIRECTION, TIME, FROM and TEACH (for make model).

PYTHON ?= python3
VENV ?= .venv
VENV_TEST ?= .venv-test
WORKERS ?= 2
BIN = $(if $(filter Windows_NT,$(OS)),Scripts,bin)
TEXT = Hello world
override TEXT := $(value TEXT)
export TEXT

# For make engine; --all: for every system, as a release has them.
BUILDS =

# For make model; its data is described in recipes/en-es/model-log.md.
DATA = ../shared/data/en-es
WORK = runs/packaged
DIRECTION = en-es
TIME = 90m
# A model's folder to learn on from; else the packaged model.
FROM =

# For make release.
KEY =
TRAIN =

# An install is done when its stamp is newer than what it was made from.
READY = $(VENV)/.vidrio-light
READY_TEST = $(VENV_TEST)/.vidrio-test
REQUIREMENTS = pyproject.toml constraints.txt

# With STATUS=file, the tests' own exit code goes there and make ends quietly (.ci/run); else it is make's own.
STATUS =
# Tests start several hundred processes, and each would recompile the package.
unexport PYTHONDONTWRITEBYTECODE
RUN_TESTS = "$(VENV_TEST)/$(BIN)/python" -m pytest -n $(WORKERS)

.DEFAULT_GOAL := help
.PHONY: help hello test slow check page engine fuzz killed model format pins docs release clean python

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

hello: $(READY) ## install Vidrio and translate TEXT="Hello world"
	@"$(VENV)/$(BIN)/vidrio" translate "$$TEXT"
	@printf '\nTo see it in a browser, from the sentence down to one multiplication:\n  %s serve --open\n' "$(VENV)/$(BIN)/vidrio"
	@printf '\nTo look inside that translation, every number of it:\n  '
	@"$(VENV)/$(BIN)/python" -c 'import os, shlex, sys; text = os.environ["TEXT"]; print(shlex.join([sys.argv[1], "look"]), f"\"{text}\"" if not set(text) & set("\"$$`\\!") else shlex.quote(text))' "$(VENV)/$(BIN)/vidrio"

test: $(READY_TEST) ## every test but the slow ones: code, style, types, pages
	@$(RUN_TESTS) --dist loadfile --no-loadscope-reorder; status=$$?; [ -n "$(STATUS)" ] || exit $$status; echo $$status > "$(STATUS)"

slow: $(READY_TEST) ## the slow tests, with their counts and times
	@$(RUN_TESTS) --dist worksteal -m "slow and not network" -rP --durations 0 --durations-min 1

check: $(READY_TEST) ## style and types only
	@"$(VENV_TEST)/$(BIN)/ruff" check
	@"$(VENV_TEST)/$(BIN)/ruff" format --check
	@"$(VENV_TEST)/$(BIN)/mypy"

page: ## check and build the page of vidrio serve; needs Node
	@cd page && npm install --no-save --no-audit --no-fund --silent
	@cd page && for step in test check lint build; do npm run --silent $$step || exit 1; done

engine: $(READY_TEST) ## compile the engine for Linux and the web
	@"$(VENV_TEST)/$(BIN)/python" -m vidrio.engine.build $(BUILDS)

fuzz: $(READY_TEST) ## damaged models, hostile documents, random sentences
	@"$(VENV_TEST)/$(BIN)/python" -m pytest -m slow -rP tests/test_engine_hostile.py tests/test_documents_hostile.py tests/test_faithful.py

killed: $(READY_TEST) ## kill -9 at 200 random moments of each command that writes
	@"$(VENV_TEST)/$(BIN)/python" -m pytest -m slow -rP tests/test_killed.py

model: $(READY_TEST) ## train the packaged DIRECTION (en-es) for TIME (90m) more
	@sh recipes/en-es/make.sh "$(DATA)" "$(WORK)" "$(DIRECTION)" "$(TIME)" "$(abspath $(VENV_TEST))/$(BIN)/python" $(FROM)

format: $(READY_TEST) ## put the code into the one format
	@"$(VENV_TEST)/$(BIN)/ruff" check --fix
	@"$(VENV_TEST)/$(BIN)/ruff" format

pins: python ## resolve the dependencies again and write constraints.txt
	@rm -rf .venv-pins && "$(PYTHON)" -m venv .venv-pins
	@.venv-pins/bin/pip install --quiet -e '.[train,interop,dev]'
	@sed -n '/^#/p' constraints.txt > .venv-pins/constraints.txt
	@.venv-pins/bin/pip list --format=freeze --exclude pip --exclude vidrio | sed 's/+[a-z0-9.]*$$//' | LC_ALL=C sort -f >> .venv-pins/constraints.txt
	@mv .venv-pins/constraints.txt constraints.txt && rm -rf .venv-pins && cat constraints.txt

docs: $(READY_TEST) ## README and docs/ as a site with search, in build/docs
	@"$(VENV_TEST)/$(BIN)/python" -m sphinx -q -W --keep-going -c docs -d build/doctrees . build/docs
	@cp build/docs/README.html build/docs/index.html && echo build/docs/index.html

release: $(READY_TEST) ## wheel, sdist and checksums in dist/, verified; KEY=… signs
	@KEY="$(KEY)" TRAIN="$(TRAIN)" "$(VENV_TEST)/$(BIN)/python" .ci/release.py

clean: ## remove what make has installed and what tools have cached
	rm -rf "$(VENV)" "$(VENV_TEST)" .venv-pins build dist page/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src/vidrio/engine/built -type f ! -name '*.wasm' ! -name 'linux-*' ! -name built-from.txt -delete
	find src tests benchmarks recipes docs -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'Vidrio needs Python 3.11 or newer.' >&2; \
	  echo "  found: $(PYTHON) --version says: $$("$(PYTHON)" --version 2>&1 | head -n 1)" >&2; \
	  echo '  do: install one from https://www.python.org/downloads/, or name the one you have: make hello PYTHON=python3.12' >&2; \
	  exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'This Python cannot make virtual environments.' >&2; \
	  echo "  found: $(PYTHON) has no venv module" >&2; \
	  echo '  do: install it (on Debian and Ubuntu: sudo apt install python3-venv), or name another: make hello PYTHON=python3.12' >&2; \
	  exit 1; }

$(READY): $(REQUIREMENTS) | python
	@echo 'Installing Vidrio into $(VENV) …' >&2
	@"$(PYTHON)" -m venv "$(VENV)"
	@"$(VENV)/$(BIN)/python" -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e .
	@touch "$@"

$(READY_TEST): $(REQUIREMENTS) | python
	@echo 'Installing Vidrio and what its tests need into $(VENV_TEST) …' >&2
	@"$(PYTHON)" -m venv "$(VENV_TEST)"
	@{ sh tests/install_chromium.sh; \
	  if command -v npm > /dev/null 2>&1; then cd page && npm install --no-save --no-audit --no-fund --silent || echo 'The page cannot be built here; its tests use what is built.' >&2; fi; } & \
	  "$(VENV_TEST)/$(BIN)/python" -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[train,interop,dev]'; \
	  status=$$?; wait; exit $$status
	@touch "$@"
