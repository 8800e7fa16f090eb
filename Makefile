# make summary    [CONFIG=own.yaml]: the pipeline, up to reports/summary.html
# make bundle     [CONFIG=own.yaml] [FORM=triton]: the pipeline, and archives of the recommended variants
# make test       lint and the tests
# make test-cluster  the tests of runs on a real Slurm, on this host (Debian: slurmctld slurmd munge, as root)
# make lint       the checks of form only
# make environment  only the packages that these need
# make check      lint and the unit tests
# make rule-graph draw the rules into docs/architecture.md
# make schema     write the fields of summary.json into docs/summary-json.md, the keys of the configuration into
#                 docs/configuration.md, a JSON Schema of each, and the table of engines into README.md
# make gpu-check  [BRIEF=1]: engines, tests and a small run on an NVIDIA GPU, with what `python3` has installed
# make clean-env  remove .venv
# Each makes .venv from the lock files in envs/ where it is missing, stale or half made.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

# Python 3.11 to 3.13: the newest that is on PATH and starts (pyenv puts there some that do not).
NEWEST := import sys; (3, 11) <= sys.version_info < (3, 14) or sys.exit(1); print(sys._base_executable)
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
    "$$python" -c '$(NEWEST)' 2>/dev/null && break; done)
# What gpu-check runs in: the environment at hand, not .venv.
ifndef GPU_PYTHON
GPU_PYTHON := $(shell command -v python3)
endif
# Where torch comes from, if not from pip's own index: the README says when and why.
TORCH_INDEX ?=

RUN_ENV := .venv/made-from-cpu.txt
TEST_ENV := .venv/made-from-test.txt
# Apart from the others: each start of Snakemake imports all plugins of its environment.
STORAGE := .venv/storage
PIP := .venv/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input
INSTALL := $(PIP) install --compile

# Many containers set it. Then each job would compile again what it imports: 1.6 s of an idle run.
unexport PYTHONDONTWRITEBYTECODE

LINT := ruff check . && ruff format --check . && mypy && python -m snakefmt --check Snakefile rules && \
    python -m snakemake --lint && PYTHONPATH=scripts lint-imports --no-cache --no-logo && \
    python tools/rule_graph.py --check && python tools/summary_schema.py --check && \
    python tools/config_schema.py --check && python tools/engines.py --check && python tools/check_reach.py && \
    python tools/size.py --check

# Scripts of the pipeline find their `python` here. Caches need a folder where HOME is none.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
ifeq ($(shell test -w "$$HOME" && echo yes),)
export XDG_CACHE_HOME ?= $(CURDIR)/.venv/cache
endif

# Two processes, each with whole files of tests, in the order of tests/conftest.py. Where one of
# them crashes pytest ends: with another in its place it was seen to wait for ever.
TESTS := python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder \
    --max-worker-restart 0

.PHONY: summary bundle environment test test-cluster check lint rule-graph schema gpu-check clean-env

CONFIG ?=
RUN := python -m snakemake --cores 1 $(if $(CONFIG),--configfile "$(CONFIG)" --)
summary: $(RUN_ENV)
	@$(RUN) reports/summary.html

FORM ?= python
bundle: summary
	@bundles=$$(python tools/recommended.py --form "$(FORM)")
	$(RUN) $$bundles
	printf '%s\n' $$bundles

test: TESTED := tests --ignore tests/cluster --ignore tests/gpu
check: TESTED := tests/unit
# Lint runs beside the first tests.
test check: $(TEST_ENV)
	@{ $(LINT); } >.venv/lint.log 2>&1 & lint=$$!
	tests=0; $(TESTS) $(TESTED) || tests=$$?
	if wait $$lint; then echo "lint: clean"; else cat .venv/lint.log; tests=1; fi
	exit $$tests

# One cluster, so one process.
test-cluster: $(TEST_ENV)
	@python -m pytest tests/cluster

environment: $(TEST_ENV)

lint: $(TEST_ENV)
	@$(LINT)

rule-graph: $(TEST_ENV)
	@python tools/rule_graph.py

schema: $(TEST_ENV)
	@python tools/summary_schema.py && python tools/config_schema.py && python tools/engines.py

# In no environment of its own: the packages for a GPU are gigabytes.
BRIEF ?=
gpu-check:
	@$(GPU_PYTHON) tests/gpu/check.py $(if $(BRIEF),--brief)

clean-env:
	@rm -rf .venv

# .venv/unfinished is there while packages are being installed. Where it was left, all is made anew,
# because pip takes a package whose installation was cut off for a whole one.
.PHONY: $(if $(wildcard .venv/unfinished),$(RUN_ENV))
$(RUN_ENV): envs/cpu.txt
	@python=$$($(or $(PYTHON),false) -c '$(NEWEST)') || { echo "make: Python 3.11, 3.12 or 3.13 is needed,\
	 '$(or $(PYTHON),python3)' is not it: install one (with its venv module) or name it:\
	 make PYTHON=/path/to/python3.13" >&2; exit 1; }
	[ ! -e .venv/unfinished ] && .venv/bin/python -c 'import pip' 2>/dev/null &&
	    [ .venv/bin/python -ef "$$python" ] || rm -rf .venv
	mkdir -p .venv
	touch .venv/unfinished
	[ -x .venv/bin/python ] || "$$python" -m venv .venv
	echo "Installing envs/cpu.txt into .venv: about 2 minutes the first time"
	$(INSTALL) $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX),--constraint envs/cpu.txt) \
	    "$$(grep ^torch== envs/cpu.txt)" && .venv/bin/python -W ignore -c 'import torch' || { \
	    echo "make: PyTorch could not be installed and imported (the reason is above). If it is about\
	 CUDA or NVIDIA libraries, take PyTorch's CPU wheel index (the README says more):\
	 make TORCH_INDEX=<address>" >&2; exit 1; }
	$(INSTALL) --no-deps -r envs/cpu.txt
	rm .venv/unfinished
	touch $@

$(TEST_ENV): $(RUN_ENV) envs/test.txt envs/storage.txt envs/test-storage.txt
	@touch .venv/unfinished
	echo "Installing envs/test.txt into .venv: seconds"
	$(INSTALL) --no-deps -r envs/test.txt
	rm -rf $(STORAGE)
	$(INSTALL) --no-deps -r envs/storage.txt -r envs/test-storage.txt --target $(STORAGE)
	rm .venv/unfinished
	touch $@
