.PHONY: bench-dp

# Numbers of the population, seconds, and queries of a bundle.
NUMBERS_OF_DP ?= 10000000
DP_SECONDS ?= 10
DP_BUNDLE ?= 64

bench-dp: ## look-ups/s of a database processor with one worker over one connection: NUMBERS_OF_DP=10000000 DP_SECONDS=10 DP_BUNDLE=64
	$(CARGO) run --release --locked -p dp --example dp-bench -- $(NUMBERS_OF_DP) $(DP_SECONDS) $(DP_BUNDLE)
