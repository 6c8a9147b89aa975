# Fuzzing: every tests/fuzz/*_fuzz.c is one harness. With gcc they become programs that replay inputs (the tests do), with
# VARIANT=fuzz and clang they become fuzzers, with VARIANT=fuzz-coverage they count which lines the corpora reach.

FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.c)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(OUT)/%)
FUZZ_SHARED_OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out $(FUZZ_SRC) tests/fuzz/replay.c tests/fuzz/seeds.c,$(wildcard tests/fuzz/*.c)))
FUZZ_MAIN := $(if $(filter fuzz,$(VARIANT)),,$(OUT)/tests/fuzz/replay.o)

# Programs that replay the corpora run once, as tests do.
$(OUT)/tests/fuzz/%.o: OF_TEST := $(if $(filter asan,$(VARIANT)),$(OF_TEST_CODE))
$(OUT)/tests/fuzz/%.o: PRIVATE := -Itransport
$(OUT)/tests/fuzz/%.o: tests/fuzz/%.c Makefile
	$(COMPILE)

.SECONDARY: $(FUZZ_SRC:%.c=$(OUT)/%.o) $(FUZZ_SHARED_OBJ) $(OUT)/tests/fuzz/replay.o
$(FUZZ_BIN) $(OUT)/tests/fuzz/seeds: ALSO := -lcmocka
$(FUZZ_BIN): $(OUT)/%: $(OUT)/%.o $(FUZZ_SHARED_OBJ) $(FUZZ_MAIN) $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

-include $(FUZZ_SRC:%.c=$(OUT)/%.d) $(FUZZ_SHARED_OBJ:.o=.d) $(OUT)/tests/fuzz/replay.d $(OUT)/tests/fuzz/seeds.d

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_BIN) $(if $(filter fuzz%,$(VARIANT)),,$(OUT)/tests/fuzz/seeds)

# Inputs from real exchanges, for harnesses whose inputs are what goes over the wire.
$(OUT)/tests/fuzz/seeds: $(OUT)/tests/fuzz/seeds.o $(OUT)/tests/fuzz/repeatable.o $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

## run, seeds (inputs from real exchanges into build/fuzz/NAME/found), or merge (what was found into tests/fuzz/corpus)
DO := run
## run: seconds for each harness
SECONDS := 60
## run: inputs for each harness; -1: no limit
RUNS := -1
## run, merge: this harness alone
ONLY :=
$(call check,fuzz,DO,run seeds merge)
$(if $(ONLY),$(call check,fuzz,ONLY,$(FUZZ_SRC:tests/fuzz/%_fuzz.c=%)))
.PHONY: fuzz
EXTRAS_fuzz = $(if $(filter seeds,$(DO)),,fuzz)
fuzz: setup ## fuzz each harness of tests/fuzz/ by clang, libFuzzer, ASan and UBSan
	@$(MAKE) --no-print-directory -j$(JOBS) $(if $(filter seeds,$(DO)),VARIANT=asan build/asan/tests/fuzz/seeds,VARIANT=fuzz fuzz-programs)
	@$(if $(filter seeds,$(DO)),build/asan/tests/fuzz/seeds build/fuzz,scripts/fuzz.sh $(DO) "$(ONLY)" "$(SECONDS)" "$(RUNS)")
