.PHONY: bench-numbers

NUMBERS ?= 10000000
NUMBERS_DIR ?= $(or $(TMPDIR),/tmp)
# For example --shared 20 (neighbours with one destination), --copied (huge pages), --hash-numbers 10000000 (less memory)
NUMBERS_FLAGS ?=

bench-numbers: ## size, build and look-ups of number maps beside a HashMap: NUMBERS=10000000 NUMBERS_DIR=… NUMBERS_FLAGS=…
	$(CARGO) run --release --locked -p numbers --example numbers-bench -- --numbers $(NUMBERS) --directory $(NUMBERS_DIR) $(NUMBERS_FLAGS)
