.PHONY: bench-enum

# Numbers of the tree, half of the queries ask for one of them. Seconds of each turn, and turns of each server.
NUMBERS_OF_ENUM ?= 1000000
ENUM_SECONDS ?= 10
ENUM_TURNS ?= 3

bench-enum: dist ## CPU of an ENUM query beside NSD under dnsperf, in turns: NUMBERS_OF_ENUM=1000000 ENUM_SECONDS=10 ENUM_TURNS=3
	SIGNALBOX=$${SIGNALBOX:-target/dist/signalbox} scripts/bench-enum.sh $(NUMBERS_OF_ENUM) $(ENUM_SECONDS) $(ENUM_TURNS)
