.PHONY: bench-dp

# Look-ups a second, how long beside changes, changes a second, numbers of the processor.
DP_RATE ?= 800000
DP_DURATION ?= 1m
DP_WRITES ?= 200/s
DP_NUMBERS ?= 10000000

bench-dp: dist ## a database processor on one core beside changes of its subscribers: target/bench/dp.json (DP_RATE=800000 DP_DURATION=1m DP_WRITES=200/s DP_NUMBERS=10000000)
	./target/dist/signalbox lab bench dp --pin $(or $(BENCH_PIN),0) --rate $(DP_RATE) --duration $(DP_DURATION) --writes $(DP_WRITES) --numbers $(DP_NUMBERS)
