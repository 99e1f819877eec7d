.PHONY: fuzz

FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(notdir $(basename $(wildcard fuzz/fuzz_targets/*.rs)))

fuzz: ## each fuzz target for FUZZ_SECONDS (cargo install cargo-fuzz; needs the nightly compiler)
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p target/fuzz/$$target && \
		$(CARGO) +nightly fuzz run -s none $$target target/fuzz/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 || exit 1; \
	done
