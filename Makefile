# The front door. With nothing but python3 (3.11 or later) and make, every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One worker more than cores: many tests wait for another process.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept, whatever the environment says: without them every process compiles everything anew.
export PYTHONDONTWRITEBYTECODE :=
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install uninstall setup demo test package check bench soak faults anchors site release format clean

# Where `make install` puts the program if neither uv nor pipx is there.
TOOLS := $(HOME)/.local/share/commonplace
COMMANDS := $(HOME)/.local/bin
# What is installed, and options for pip.
INSTALL ?= .
INSTALL_OPTIONS ?=

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "make: Commonplace needs Python 3.11 or later; set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
		{ rm -rf $(VENV); echo "make: '$(PYTHON) -m venv' does not work here; install your system's python3-venv package." >&2; exit 1; }
	@touch $@

$(VENV)/.runtime: $(VENV)/.python pyproject.toml constraints.txt
	@echo "setting up: the program" >&2
	@$(BIN)/pip install --quiet --editable . >$(VENV)/setup.log 2>&1 || \
		{ echo "make: the packages could not be installed (see $(VENV)/setup.log); check that the package index can be reached." >&2; exit 1; }
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "setting up: the test tools" >&2
	@$(BIN)/pip install --quiet --editable '.[dev]' >$(VENV)/setup.log 2>&1 || \
		{ echo "make: the test tools could not be installed (see $(VENV)/setup.log); check that the package index can be reached." >&2; exit 1; }
	@touch $@

install: ## install the command `commonplace` for you (with uv or pipx if they are there), and say where
	@if command -v uv >/dev/null 2>&1; then \
		uv tool install --quiet --force --constraints constraints.txt $(INSTALL) && echo "installed: $$(uv tool dir --bin)/commonplace"; \
	elif command -v pipx >/dev/null 2>&1; then \
		pipx install --quiet --force $(INSTALL) && echo "installed: $$(pipx environment --value PIPX_BIN_DIR)/commonplace"; \
	else \
		{ $(PYTHON) -m venv $(TOOLS) >/dev/null 2>&1 || \
			{ echo "make: '$(PYTHON) -m venv' does not work here; install your system's python3-venv package." >&2; exit 1; }; } && \
		{ $(TOOLS)/bin/pip install --quiet --upgrade $(INSTALL_OPTIONS) $(INSTALL) >$(TOOLS)/install.log 2>&1 || \
			{ echo "make: the packages could not be installed (see $(TOOLS)/install.log); check that the package index can be reached." >&2; exit 1; }; } && \
		mkdir -p $(COMMANDS) && ln -sf $(TOOLS)/bin/commonplace $(COMMANDS)/commonplace && \
		echo "installed: $(COMMANDS)/commonplace"; \
	fi
	@case ":$$PATH:" in *":$(COMMANDS):"*) ;; *) echo "Put $(COMMANDS) on your PATH if the shell does not find it.";; esac

uninstall: ## remove what `make install` installed; ~/.commonplace and your agents' files stay (first: commonplace setup --undo)
	@if command -v uv >/dev/null 2>&1 && uv tool uninstall commonplace 2>/dev/null; then :; \
	elif command -v pipx >/dev/null 2>&1 && pipx uninstall commonplace 2>/dev/null; then :; \
	else rm -rf $(TOOLS) $(COMMANDS)/commonplace; fi
	@echo "removed: the command; your memory in ~/.commonplace stays"

setup: $(VENV)/.dev ## make .venv with everything in it
	@echo "ready: $(BIN)/commonplace"

demo: $(VENV)/.runtime ## show what it does, on bundled sample sessions
	@$(BIN)/commonplace demo

test: $(VENV)/.dev ## run every test but those of package, soak and faults, in the same order and with the same examples each time
	@$(BIN)/pytest -n $(WORKERS)

package: $(VENV)/.dev ## build the wheel, install it with pip, uv and pipx, and let two type checkers read it
	@$(BIN)/pytest -m package

check: $(VENV)/.dev ## formatting, lint, layers, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright

bench: $(VENV)/.dev ## measure, write bench/results/
	@$(BIN)/python -m bench

soak: $(VENV)/.dev ## long crash and race runs, and every property with many random examples
	@COMMONPLACE_TEST_PROFILE=soak $(BIN)/pytest -n $(WORKERS) -m "soak or hypothesis" --randomly-seed=default --timeout 3600

faults: $(VENV)/.dev ## kill, cut and fill up what workers need, and look from outside at what is left
	@$(BIN)/pytest -n $(WORKERS) -m faults --timeout 900 tests/faults

site: $(VENV)/.dev ## build the documentation as a site into site/
	@$(BIN)/python -m release.doc_site site && echo "built: site/index.html"

release: $(VENV)/.dev ## everything for a release but the upload, into dist/
	@$(BIN)/python -m release.make

anchors: $(VENV)/.python ## fetch the pinned Codex, Claude Code, SDKs, an S3 server and a fuzzer into a cache outside the tree
	@$(BIN)/python tests/anchors/fetch.py

format: $(VENV)/.dev ## rewrite the code as ruff likes it
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

clean: ## remove .venv and caches
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
