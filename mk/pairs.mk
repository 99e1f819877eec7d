.PHONY: test-pairs

PAIRS ?= 100000

test-pairs: ## PAIRS=100000 subscribers begin two sessions at once, at one router and at two on one MariaDB: none is at two PCRFs
	SIGNALBOX_PAIRS=$(PAIRS) $(CARGO) test --release --locked -p dsr --test it pdra::crowds::subscribers -- --nocapture --test-threads=1
