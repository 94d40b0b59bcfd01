# make demo   sets up what a user needs, renders out/demo.png without a window, prints its path and frame rates
# make test   lint, types and the tests (under 10 minutes on 2 cores); make test-all adds the longer sweeps with fresh seeds
# make setup  system packages (where apt and root are there) and .venv; make setup-dev adds what developers need
# make fuzz   a million damaged files for every reader (INPUTS=, SEED=)
# make lint | format | types | wheel | reference | test-emulated  one step each

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PACKAGES := libegl1 libgl1 libgl1-mesa-dri pocl-opencl-icd
TEST_PACKAGES := xvfb xdotool flam3-utils
SUDO := $(shell [ "$$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo sudo -n; })
MAY_INSTALL := $(shell command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; } && echo yes)
APT_INSTALL = $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq
# Packages are compiled as they are imported: most of their modules never are.
PIP_INSTALL = $(PY) -m pip install --disable-pip-version-check --no-input --no-compile
# On a terminal one line that names the package at hand, in place of pip's hundreds; elsewhere errors alone.
SHOW_PROGRESS = awk -v live=$$([ -t 1 ] && echo 1) '/^Collecting|^Downloading|^Installing|^Building/ { n++; \
  if (live) { printf "\r\033[K  %3d  %s", n, substr($$0, 1, 70); fflush() } } /^ERROR|^error/ { print } \
  END { if (live) printf "\r\033[K"; print "  " n + 0 " steps done" }'

.PHONY: demo test test-all fuzz test-emulated setup setup-dev lint types format system test-system wheel reference
INPUTS := 1000000
SEED := 1
.DELETE_ON_ERROR:
# The tests start hundreds of programs, and each would compile its modules anew: twice the time of a small export.
unexport PYTHONDONTWRITEBYTECODE
SHELL := bash
.SHELLFLAGS := -o pipefail -c

demo: setup
	@mkdir -p out
	$(PY) main.py doctor
	$(PY) main.py demo -o out/demo.png
	$(PY) main.py bench run mirrors/max_depth=6 fern mandelbrot reduction --seconds 0.3

# Types are checked beside the tests, whose cores are idle while they start and end.
test: setup-dev test-system lint
	@$(PY) -m mypy & types=$$!; $(PY) -m pytest -n 2 --dist worksteal -m "not slow"; tests=$$?; wait $$types && exit $$tests

test-all: setup-dev test-system lint types
	RAYFOLD_FRESH_SEEDS=1 $(PY) -m pytest -n 2 --dist worksteal

# A million mutated files for every reader (about seven hours of one core); findings go to out/fuzz.
fuzz: setup-dev
	$(PY) -m tests.fuzz.run all --inputs $(INPUTS) --seed $(SEED) --folder out/fuzz

# The quick tests of kernels on emulated CUDA devices (tests/emulated), which need a C++ compiler and an hour.
test-emulated: setup-dev
	RAYFOLD_TEST_DEVICES=emulated $(PY) -m pytest -n 2 --dist worksteal -m "not slow"

setup: system $(VENV)/ready
setup-dev: system $(VENV)/ready-dev

# GL and a processor's OpenCL come from the system. Without the right to install, doctor says what is missing.
system:
	@missing=""; for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && command -v dpkg >/dev/null; then \
	  if [ "$(MAY_INSTALL)" = yes ]; then echo "installing system packages:$$missing"; $(APT_INSTALL) $$missing >/dev/null; \
	  else echo "not installed (needs root): sudo apt install$$missing"; fi; fi

test-system:
	@missing=""; for p in $(TEST_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && [ "$(MAY_INSTALL)" = yes ]; then echo "installing packages of the tests:$$missing"; \
	  $(APT_INSTALL) $$missing >/dev/null || true; fi

# Debian and Ubuntu keep venv in a package of its own; a virtual environment that was made without it has no pip.
$(VENV)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rayfold needs Python 3.11 or newer")'
	@$(PY) -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV) >/dev/null 2>&1; } || { \
	  package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); rm -rf $(VENV); \
	  if [ "$(MAY_INSTALL)" = yes ]; then echo "installing $$package"; \
	    { $(APT_INSTALL) $$package || $(APT_INSTALL) python3-venv; } >/dev/null && $(PYTHON) -m venv $(VENV); \
	  else echo "Python's venv is missing: sudo apt install $$package, then make again"; exit 1; fi; }
	@touch $@

# CUDA's driver and compiler come as wheels. PyCUDA, which has none, is built where that is possible.
$(VENV)/ready: requirements.lock | $(VENV)/pip
	@echo "installing Python packages into $(VENV) (a minute, about 300 MB)"
	@$(PIP_INSTALL) -r requirements.lock 2>&1 | $(SHOW_PROGRESS)
	@if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then \
	  echo "installing CUDA's wheels, building PyCUDA"; $(PIP_INSTALL) -q cuda-bindings nvidia-cuda-nvrtc nvidia-cublas; \
	  $(PIP_INSTALL) -q pycuda 2>/dev/null || echo "PyCUDA did not build; CUDA devices work without it"; fi
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements-dev.lock
	@echo "installing the developers' packages into $(VENV)"
	@$(PIP_INSTALL) -r requirements-dev.lock 2>&1 | $(SHOW_PROGRESS)
	@touch $@

lint: $(VENV)/ready-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	git ls-files 'shaders/*.cu' 'shaders/*.h' 'shaders/*.frag' | xargs $(VENV)/bin/clang-format --dry-run --Werror
	$(PY) .ci/check_commits.py

types: $(VENV)/ready-dev
	$(PY) -m mypy

format: $(VENV)/ready-dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	git ls-files 'shaders/*.cu' 'shaders/*.h' 'shaders/*.frag' | xargs $(VENV)/bin/clang-format -i

wheel: $(VENV)/ready-dev
	$(PY) -m build --outdir out/dist

reference: $(VENV)/ready-dev
	$(PY) -m tests.docs.reference_pages
