# Needs: Python >= 3.11 with venv, a C++17 compiler, make. Everything else comes from pip into .venv.
#
#   make zoo           measure the model zoo against ONNX Runtime's CPU provider
#   make test          run the tests
#   make test-slow     the long ones: every ONNX node case compiled, full-size models
#   make test-neon     NEON's kernels, in QEMU where the machine is another: gcc-aarch64-linux-gnu, qemu-user-static
#   make test-isa      the kernels' conformance as on smaller machines: XYNTRA_ISA=avx2 and scalar
#   make lint          ruff and mypy
#   make dev           all that a developer needs, in .venv
#   make native        build the plugin library into xyntra_ep/
#   make prebuilt      compile the kernels that serve without a compiler, for PREBUILT_TARGETS
#   make wheel         what is published, in dist/: with prebuilt kernels for all processors
#   make test-wheel    build the wheel, install it in a fresh environment, run a session from there
#   make wheels        wheels of all systems, by Zig's Clang, in dist/ (release/README.md); after make prebuilt
#   make release-check a release without publishing it: the wheel, its papers, used in a fresh environment
#   make test-bench    the smallest benchmark run there is, its gates, its pages, and a check of every file of it
#   make hunt          random models against ONNX Runtime's CPU provider, for a minute (docs/hunting.md)
#   make test-asan     native code and kernels under AddressSanitizer and UndefinedBehaviorSanitizer
#   make test-tsan     the same under ThreadSanitizer: many threads
#   make fuzz          libFuzzer on what reads foreign bytes, FUZZ_SECONDS for each program
#   make test-exports  models exported from PyTorch and transformers, against ONNX Runtime's CPU provider
#   make test-web      pages in a browser, against ONNX Runtime: Chromium, Node, clang with lld
#   make clean         forget all of the above
#
# .venv holds an editable install, so commands and tests both run this checkout, and `make native` puts the library
# beside the Python files that load it. What a user installs, the wheel, is tested apart by `make test-wheel`.

PYTHON       ?= python3
VENV         ?= .venv
BUILD        ?= build/native
PYTEST_ARGS  ?=
TEST_JOBS    ?= auto
ZOO_ARGS     ?= --quick
HUNT_ARGS    ?= --minutes 1 --seed 1
FUZZ_SECONDS ?= 60
PREBUILT_TARGETS ?=

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
LIB    := xyntra_ep/libxyntra_ep.so
PREFER := $(CURDIR)/$(BIN)
CHECKED := build/bench
NEWEST  := $(lastword $(sort $(wildcard reports/results/zoo-*.json)))

.PHONY: zoo test test-slow test-neon test-isa lint dev native prebuilt wheel wheels release-check test-wheel test-bench hunt test-exports test-web test-asan test-tsan fuzz clean help
.DEFAULT_GOAL := help

help:
	@sed -n '3,23s/^# *//p' Makefile

zoo: $(VENV)/.bench native
	$(BIN)/bench run zoo $(ZOO_ARGS)

test: $(VENV)/.test native
	$(BIN)/python -m pytest -m "not slow" -n $(TEST_JOBS) $(PYTEST_ARGS)

test-slow: $(VENV)/.test native
	$(BIN)/python -m pytest -m slow -n $(TEST_JOBS) --ignore=tests/web $(PYTEST_ARGS)

test-neon: $(VENV)/.test
	@$(BIN)/python -m tests.support.emulated
	$(BIN)/python -m pytest -m "not slow" -k neon -n $(TEST_JOBS) $(PYTEST_ARGS) tests/tracea

# What asks the machine: kernels one by one, ONNX's operators through sessions. Tests that name the machine which they make
# code for are `make test`'s: they do the same whatever XYNTRA_ISA says. NEON is the same under all of them.
ISAS      ?= avx2 scalar
ISA_TESTS := tests/tracea/kernels tests/tracea/emitters tests/tracea/planning tests/provider/test_precision.py \
    tests/conformance/test_onnx_nodes.py
test-isa: $(VENV)/.test native
	set -e; for isa in $(ISAS); do XYNTRA_ISA=$$isa $(BIN)/python -m pytest -m "not slow" -n $(TEST_JOBS) --as-this-machine \
	    -k "not neon and not gpu and not test_meaning and not every_kernel_compiles" $(PYTEST_ARGS) $(ISA_TESTS); done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dev: $(VENV)/.dev native

# A model of unit tests' size, few runs: it is the commands and their files that are tested, not the machine.
test-bench: $(VENV)/.test native
	rm -rf $(CHECKED)
	$(BIN)/bench run zoo -m mobilenetv2-tiny --threads 1 --quick --min-time 0.5 --max-time 5 \
	    --json $(CHECKED)/run.json
	$(BIN)/bench gate $(CHECKED)/run.json
	$(BIN)/bench compare $(CHECKED)/run.json $(CHECKED)/run.json
	$(BIN)/bench compare $(NEWEST) $(CHECKED)/run.json >$(CHECKED)/compare.txt
	$(BIN)/bench report --html $(CHECKED)/site --results $(CHECKED)/run.json
	$(BIN)/bench report --check
	$(BIN)/python -m tests.bench_check $(CHECKED)/run.json $(CHECKED)/site

hunt: $(VENV)/.test native
	$(BIN)/python -m tests.hunt $(HUNT_ARGS)

test-exports: $(VENV)/.torch native
	$(BIN)/python -m pytest -m torch $(PYTEST_ARGS)

# Screenshots are left in build/web.
test-web: $(VENV)/.test native
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/web

# docs/soundness.md. Each builds what it needs in a folder of its own and leaves xyntra_ep/ as it is.
test-asan: $(VENV)/.test
	$(BIN)/python -m tests.sanitized address $(PYTEST_ARGS)

test-tsan: $(VENV)/.test
	$(BIN)/python -m tests.sanitized thread $(PYTEST_ARGS)

fuzz: $(VENV)/.test native
	$(BIN)/python -m tests.fuzzers --seconds $(FUZZ_SECONDS)

# Ninja knows best what is out of date, so it is always asked; an up-to-date build takes a tenth of a second.
native: $(BUILD)/build.ninja
	@$(BIN)/cmake --build $(BUILD)
	@$(BIN)/cmake -E copy_if_different $(BUILD)/libxyntra_ep.so $(LIB)

$(BUILD)/build.ninja: CMakeLists.txt $(VENV)/.made
	$(BIN)/cmake -S . -B $(BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(PREFER)/ninja \
	    -DCMAKE_BUILD_TYPE=Release -DXYNTRA_WERROR=ON -DXYNTRA_BUILD_HOST=ON
	@touch $@

prebuilt: $(VENV)/.test native
	$(BIN)/python -m xyntra_ep.tracea.prebuilt.build $(PREBUILT_TARGETS:%=--target %)
	$(BIN)/python -m xyntra_ep.diagnostics.compiled.operations

wheel: prebuilt
	$(PIP) wheel --no-deps --wheel-dir dist .

wheels: $(VENV)/.release
	$(BIN)/python -m release.wheels --output dist

RELEASE_ARGS ?=
release-check: $(VENV)/.release native
	$(BIN)/python -m xyntra_ep.tracea.prebuilt.build --here --kind Pointwise --output build/prebuilt
	$(BIN)/python -m xyntra_ep.diagnostics.compiled.operations --output build/prebuilt
	$(BIN)/python -m release.check --prebuilt build/prebuilt $(RELEASE_ARGS)

# With the prebuilt kernels that the check wants, since all of them take minutes.
test-wheel: $(VENV)/.test native
	rm -rf build/wheel .venv-wheel
	$(BIN)/python -m xyntra_ep.tracea.prebuilt.build --here --kind Pointwise --output build/prebuilt
	$(BIN)/python -m xyntra_ep.diagnostics.compiled.operations --output build/prebuilt
	$(PIP) wheel --no-deps --wheel-dir build/wheel -C cmake.define.XYNTRA_PREBUILT=$(CURDIR)/build/prebuilt .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip --disable-pip-version-check --quiet install "$$(echo build/wheel/*.whl)[bench]"
	cd build/wheel && ../../.venv-wheel/bin/python ../../tests/wheel_check.py
	rm -rf .venv-wheel

# cmake and ninja always come from pip, so every machine builds with the same ones.
$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	    'Python 3.11 or newer is needed: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install "cmake>=3.20" ninja
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.made
	$(PIP) install --editable ".[bench]"
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.made
	$(PIP) install --editable ".[test]"
	@touch $@ $(VENV)/.bench

$(VENV)/.dev: pyproject.toml $(VENV)/.made
	$(PIP) install --editable ".[dev]"
	@touch $@ $(VENV)/.bench $(VENV)/.test

$(VENV)/.release: pyproject.toml $(VENV)/.made
	$(PIP) install --editable ".[test,release]"
	@touch $@ $(VENV)/.bench $(VENV)/.test

$(VENV)/.torch: pyproject.toml $(VENV)/.made
	$(PIP) install --editable ".[test,torch,triton]"
	@touch $@ $(VENV)/.bench $(VENV)/.test

clean:
	rm -rf build dist $(VENV) .venv-wheel $(LIB)
