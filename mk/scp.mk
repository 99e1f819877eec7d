.PHONY: bench-scp

# The proxies share core 0; client and producers get the others. In all 2 x rounds x 5 x duration.
SCP_ROUNDS ?= 3
SCP_DURATION ?= 5s
SCP_PIN ?= 0

bench-scp: build ## our SCP, HAProxy and nghttpx as proxies under one load: target/bench/scp.json
	./target/release/signalbox lab bench scp --pin $(SCP_PIN) --rounds $(SCP_ROUNDS) --duration $(SCP_DURATION)
