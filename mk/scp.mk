.PHONY: bench-scp

# The proxies share core 0; generator and producers get the others. As root, all of it goes before other work on this
# machine; all proxies alike.
SCP_ROUNDS ?= 3
SCP_DURATION ?= 5s
SCP_PIN ?= 0
SCP_PRODUCERS ?= 1,176
SCP_FLAGS ?=
BENCH_NICE ?= $(shell [ "$$(id -u)" = 0 ] && echo nice -n -10)

bench-scp: dist ## our SCP, HAProxy and nghttpx as proxies under the same loads: target/bench/scp.json (SCP_FLAGS=--quick)
	$(BENCH_NICE) ./target/dist/signalbox lab bench scp --pin $(SCP_PIN) --rounds $(SCP_ROUNDS) --duration $(SCP_DURATION) --producers $(SCP_PRODUCERS) $(SCP_FLAGS)
