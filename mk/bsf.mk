.PHONY: crash-bsf preload-bsf

BINDINGS ?= 1000000
PRELOAD_DIR ?= $(or $(TMPDIR),/tmp)/signalbox-preload

crash-bsf: ## kill -9 of a BSF under load, a hundred times
	BSF_CRASH_ROUNDS=100 $(CARGO) test --locked -p bsf --test it crash:: -- --nocapture

preload-bsf: ## what bindings take on disk and in memory: BINDINGS=1000000 PRELOAD_DIR=…
	$(CARGO) run --profile dist --locked -p bsf --example preload -- --bindings $(BINDINGS) --directory $(PRELOAD_DIR)
