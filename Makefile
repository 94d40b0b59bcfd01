# make demo   sets everything up, renders out/demo.png without a window, prints its path and frame rates
# make test   the tests (under 10 minutes on 2 cores); make test-all adds the longer sweeps,
#             make test-emulated runs the kernels' tests on emulated CUDA devices
# make setup  system packages (where apt and root are there) and .venv; make lint  ruff; make format  ruff format

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PACKAGES := libegl1 libgl1 libgl1-mesa-dri pocl-opencl-icd
TEST_PACKAGES := xvfb xdotool flam3-utils
SUDO := $(shell [ "$$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo sudo -n; })
MAY_INSTALL := $(shell command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; } && echo yes)

.PHONY: demo test test-all test-emulated setup lint format system test-system
.DELETE_ON_ERROR:

demo: setup
	@mkdir -p out
	$(PY) main.py doctor
	$(PY) main.py export scenes/demo.toml -o out/demo.png
	$(PY) main.py bench run mirrors/depth=6 fern mandelbrot reduction --seconds 0.3

test: setup test-system lint
	$(PY) -m pytest -n 2 --dist loadfile -m "not slow"

test-all: setup test-system lint
	$(PY) -m pytest -n 2 --dist loadfile

# The quick tests of kernels on emulated CUDA devices (tests/emulated), which need a C++ compiler and an hour.
test-emulated: setup
	RAYFOLD_TEST_DEVICES=emulated $(PY) -m pytest -n 2 --dist loadfile -m "not slow"

setup: system $(VENV)/ready

# GL and a processor's OpenCL come from the system. Without the right to install, doctor says what is missing.
system:
	@missing=""; for p in $(PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && command -v dpkg >/dev/null; then \
	  if [ "$(MAY_INSTALL)" = yes ]; then $(SUDO) apt-get update -qq; DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq $$missing >/dev/null; \
	  else echo "not installed (needs root): sudo apt install$$missing"; fi; fi

test-system:
	@missing=""; for p in $(TEST_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && [ "$(MAY_INSTALL)" = yes ]; then $(SUDO) apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq $$missing >/dev/null || true; fi

# PyCUDA has no wheel: where an NVIDIA GPU is present it is built, and a failure leaves OpenCL.
$(VENV)/ready: requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rayfold needs Python 3.11 or newer")'
	[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check -r requirements.lock
	@if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then \
	  $(PY) -m pip install -q --disable-pip-version-check pycuda || echo "PyCUDA did not build; NVIDIA GPUs run through OpenCL"; fi
	@touch $@

lint: $(VENV)/ready
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(VENV)/ready
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
