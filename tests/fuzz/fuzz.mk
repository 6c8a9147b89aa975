# Fuzzing: every tests/fuzz/*_fuzz.c is one harness. With gcc they become programs that replay inputs (the tests do), with
# VARIANT=fuzz and clang they become fuzzers, with VARIANT=fuzz-coverage they count which lines the corpora reach.

FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.c)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(OUT)/%)
FUZZ_SHARED_OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out $(FUZZ_SRC) tests/fuzz/replay.c tests/fuzz/seeds.c,$(wildcard tests/fuzz/*.c)))
FUZZ_MAIN := $(if $(filter fuzz,$(VARIANT)),,$(OUT)/tests/fuzz/replay.o)

# `make fuzz` fuzzes each harness for SECONDS, or RUNS inputs; ONLY=NAME: one harness.
SECONDS ?= 60
RUNS ?= -1
ONLY ?=

# Programs that replay the corpora run once, as tests do.
$(OUT)/tests/fuzz/%.o: OF_TEST := $(if $(filter asan,$(VARIANT)),$(OF_TEST_CODE))
$(OUT)/tests/fuzz/%.o: PRIVATE := -Itransport
$(OUT)/tests/fuzz/%.o: tests/fuzz/%.c Makefile
	$(COMPILE)

.SECONDARY: $(FUZZ_SRC:%.c=$(OUT)/%.o) $(FUZZ_SHARED_OBJ) $(OUT)/tests/fuzz/replay.o
$(FUZZ_BIN): $(OUT)/%: $(OUT)/%.o $(FUZZ_SHARED_OBJ) $(FUZZ_MAIN) $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	@echo "LD   $@"
	@$(CC) $(LDSAN) $(LDFLAGS) $(filter %.o,$^) -Wl,--start-group $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK) -Wl,--end-group $(PKG_LIBS) -lcmocka -lm -o $@

-include $(FUZZ_SRC:%.c=$(OUT)/%.d) $(FUZZ_SHARED_OBJ:.o=.d) $(OUT)/tests/fuzz/replay.d $(OUT)/tests/fuzz/seeds.d

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_BIN) $(if $(filter fuzz%,$(VARIANT)),,$(OUT)/tests/fuzz/seeds)

.PHONY: fuzz
fuzz: EXTRAS := fuzz
fuzz: setup ## fuzz each harness of tests/fuzz/ for SECONDS=60 (RUNS=N, ONLY=NAME): clang, libFuzzer, ASan, UBSan
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=fuzz fuzz-programs
	@scripts/fuzz.sh run "$(SECONDS)" "$(RUNS)" "$(ONLY)"

# Inputs from real exchanges, for harnesses whose inputs are what goes over the wire.
$(OUT)/tests/fuzz/seeds: $(OUT)/tests/fuzz/seeds.o $(OUT)/tests/fuzz/repeatable.o $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	@echo "LD   $@"
	@$(CC) $(LDSAN) $(LDFLAGS) $(filter %.o,$^) -Wl,--start-group $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK) -Wl,--end-group $(PKG_LIBS) -lcmocka -lm -o $@

.PHONY: fuzz-seeds
fuzz-seeds: setup ## write inputs from real exchanges into build/fuzz/NAME/found
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=asan build/asan/tests/fuzz/seeds
	@build/asan/tests/fuzz/seeds build/fuzz

.PHONY: fuzz-merge
fuzz-merge: EXTRAS := fuzz
fuzz-merge: setup ## take what the fuzzers found into tests/fuzz/corpus, minimised (ONLY=NAME)
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=fuzz fuzz-programs
	@scripts/fuzz.sh merge "$(ONLY)"

.PHONY: fuzz-coverage
fuzz-coverage: EXTRAS := fuzz
fuzz-coverage: setup ## which lines the corpora of tests/fuzz/ reach: a table by folder and file
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=fuzz-coverage fuzz-programs
	@scripts/fuzz.sh coverage
