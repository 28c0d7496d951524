# Thin face over Meson: `make demo` and `make check` work on a fresh Debian 12 as root, each installing what it needs.
BUILD ?= build
PREFIX ?= /usr

.PHONY: all build demo check check-sanitize bench install clean deps deps-test deps-bench fuzz
all: build

deps:
	@tools/install-packages build

deps-test: deps
	@tools/install-packages test

deps-bench: deps
	@tools/install-packages bench

$(BUILD)/build.ninja:
	@meson setup $(BUILD) --prefix $(PREFIX) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -rf $(BUILD); exit 1; }
	@rm -f $(BUILD).log

# The programs alone; the tests are built by `check`. A PREFIX that is given also holds for a build folder of another one.
build: deps $(BUILD)/build.ninja
	@$(if $(filter command environment,$(firstword $(origin PREFIX))),meson configure $(BUILD) -Dprefix=$(PREFIX))
	@ninja -C $(BUILD) programs

demo: build
	@tools/install-packages demo
	@demo/run $(BUILD)

check: deps-test
	@tests/run $(BUILD)

bench: deps-bench build
	@tests/bench/run $(BUILD)
	@tests/bench/gate $(BUILD)

# Each harness for FUZZ_SECONDS.
fuzz: deps
	@tools/install-packages fuzz
	@tests/fuzz/run

install: build
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) $(BUILD)-*
