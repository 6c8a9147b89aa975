# Railyard: the front door. `make help` lists the targets and their variables.
#
# The C tree is discovered: a room is a folder, every *.c in it that is not a test or a main joins the room's
# library, every *_test.c becomes one test program. Adding a file needs no line here. A scheduler, a congestion
# controller, a re-injection mode, a queue discipline or a transport of the player is such a file: see REGISTRIES.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VARIANT ?= release
CC ?= gcc
PKGS := gnutls libnghttp3 jansson yaml-0.1

# Recorded traces beside the project are found by every command that make runs.
SHARED_TRACES := $(wildcard $(abspath ../shared/traces))
export RAILYARD_TRACE_PATH := $(RAILYARD_TRACE_PATH)$(if $(SHARED_TRACES),$(if $(RAILYARD_TRACE_PATH),:)$(SHARED_TRACES))

JOBS ?= $(shell nproc)
# Variables that help lists are set with := where the environment must not: a machine has a SIZE or an IMAGE of its own.
# $(call check,TARGET,VARIABLE,WORDS,some): refuses what the variable does not take, before anything is done. Without
# `some` it takes one of the words. $(call check_on,TARGET,VARIABLE): it is 1 or nothing.
check = $(if $(filter $1,$(MAKECMDGOALS)),$(if $(or $(filter-out $3,$($2)),$(if $4,,$(word 2,$($2))),$(if $($2),,none)),$(error make $1: $2 takes $(if $4,some of ,$(if $(word 2,$3),one of ))$(subst $() ,$(comma) ,$3)$(if $4, (blanks between them)), not '$($2)')))
check_on = $(if $($2),$(call check,$1,$2,1))
comma := ,
# Without compiled modules `railyard run` takes 2 s of processor time more each time that it starts.
unexport PYTHONDONTWRITEBYTECODE
OUT := build/$(VARIANT)
BIN := $(if $(filter release,$(VARIANT)),build/bin,$(OUT)/bin)

# clang, which only fuzzing uses, warns of other things than gcc.
WARN := -Wall -Wextra -Wshadow $(if $(filter fuzz%,$(VARIANT)),,-Wconversion -Werror)
# Rooms of lib/ and apps/ are included by their own names: "base/net.h" is lib/base/net.h.
LANGUAGE := -std=c17 -D_GNU_SOURCE -I. -Ilib -Iapps -Itransport/include -Ilib/driver/include
BASE_CFLAGS := $(LANGUAGE) $(WARN) -g -fno-omit-frame-pointer -MMD -MP
# char is unsigned in the sanitizers' build, as on ARM, and signed in the other one: nothing may depend on it.
ifeq ($(VARIANT),asan)
# -Og instead of -O1: compiling takes a third less, and the tests a little longer.
BASE_CFLAGS += -g1 -funsigned-char -Og -fsanitize=address,undefined -fno-sanitize-recover=all -DXL_CHECK_TIMERS
# 170 programs, each in 0.06 s instead of 0.14.
LDSAN := -fsanitize=address,undefined $(if $(shell command -v ld.gold),-fuse-ld=gold)
else ifeq ($(VARIANT),fuzz)
CC := clang
BASE_CFLAGS += -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DXL_CHECK_TIMERS
LDSAN := -fsanitize=fuzzer,address,undefined
else ifeq ($(VARIANT),fuzz-coverage)
CC := clang
BASE_CFLAGS += -O1 -fprofile-instr-generate -fcoverage-mapping -DXL_CHECK_TIMERS
LDSAN := -fprofile-instr-generate
else ifeq ($(VARIANT),tsan)
BASE_CFLAGS += -O1 -fsanitize=thread
LDSAN := -fsanitize=thread
else ifeq ($(VARIANT),coverage)
BASE_CFLAGS += -O1 --coverage -fprofile-update=atomic -DXL_CHECK_TIMERS
LDSAN := --coverage
else
BASE_CFLAGS += -O2
# What a simulated packet runs through can be optimised as one unit, when xlink-sim is linked: a sixth fewer instructions.
# The objects also have ordinary code, for all other programs. Not by clang, nor with CFLAGS of the user's.
LTO := $(if $(CFLAGS)$(findstring clang,$(CC)),,-O3 -flto=auto)
endif
# Asked once, and only when something is compiled: on a fresh machine pkg-config comes with `make setup`.
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS)))$(PKG_CFLAGS)
# AES-GCM of packets, where the library is there: Debian has it for x86-64 (transport/crypto/gcm.c). Asked when something
# is compiled, since `make setup build` brings it.
GCM_LIBS = $(eval GCM_LIBS := $(if $(shell ls /usr/include/intel-ipsec-mb.h 2>/dev/null),-lIPSec_MB))$(GCM_LIBS)
PKG_LIBS = $(eval PKG_LIBS := $(shell pkg-config --libs $(PKGS)) $(GCM_LIBS))$(PKG_LIBS)
CFLAGS_ALL = $(BASE_CFLAGS) $(if $(GCM_LIBS),-DXL_HAS_IPSEC_MB) $(PKG_CFLAGS) $(CFLAGS)

# Rooms. Only the transport's own objects may include the transport's inner headers (-Itransport).
TRANSPORT_SRC := $(filter-out %_test.c transport/testing/%,$(wildcard transport/*/*.c))
DRIVER_SRC := $(filter-out %_test.c,$(wildcard lib/driver/*.c))
HOUSE_SRC := $(filter-out %_test.c %/main.c lib/driver/%,$(wildcard lib/*/*.c emulator/*/*.c player/*.c server/*.c apps/*/*.c peers/relay/*.c))
TEST_SRC := $(wildcard transport/*/*_test.c transport/*/tests/*_test.c lib/*/*_test.c emulator/*/*_test.c player/*_test.c server/*_test.c apps/*/*_test.c)

# What registers itself: a folder's tables of functions, by their definitions in its *.c. HEADER TYPE PREFIX TABLE FIRST,
# as scripts/registry.sh takes them.
REGISTRIES := transport/scheduler transport/congestion transport/reinjection emulator/link player
REGISTRY_transport/scheduler := scheduler/scheduler.h xl_scheduler_ops xl_scheduler_ xl_schedulers minrtt
REGISTRY_transport/congestion := congestion/congestion.h xl_cc_ops xl_cc_ xl_ccs cubic
REGISTRY_transport/reinjection := reinjection/reinjection.h xl_reinjection_ops xl_reinjection_ xl_reinjection_modes none
REGISTRY_emulator/link := emulator/link/queue.h link_queue_discipline link_queue_ link_queue_disciplines infinite
REGISTRY_player := player/transport.h player_transport_ops player_transport_ player_transports quic
GENERATED := build/generated
REGISTRY_SRC := $(REGISTRIES:%=$(GENERATED)/%/registry.c)

# Asked each time, and written only where it changed, so that a definition that came or went is seen.
$(REGISTRY_SRC): $(GENERATED)/%/registry.c: FORCE
	@mkdir -p $(@D)
	@scripts/registry.sh $* $(REGISTRY_$*) > $@.$$$$ || { rm -f $@.$$$$; exit 1; }; \
		if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi
FORCE:

generated_obj = $(patsubst $(GENERATED)/%.c,$1/%.o,$(filter $(GENERATED)/$2/%,$(REGISTRY_SRC)))

TRANSPORT_OBJ := $(TRANSPORT_SRC:%.c=$(OUT)/%.o) $(call generated_obj,$(OUT),transport)
# Replaces GnuTLS's random numbers by seeded ones wherever it is linked, and a program that calls gnutls_rnd() would get
# it from a library: it is for the simulator alone.
SIM_RANDOM := $(OUT)/emulator/sim/random.o
HOUSE_OBJ := $(filter-out $(SIM_RANDOM),$(HOUSE_SRC:%.c=$(OUT)/%.o)) $(call generated_obj,$(OUT),emulator) $(call generated_obj,$(OUT),player)
TEST_BIN := $(TEST_SRC:%.c=$(OUT)/%)
TESTING_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard transport/testing/*.c))
DRIVER_OBJ := $(DRIVER_SRC:%.c=$(OUT)/%.o)
LIBXLINK := $(OUT)/libxlink.a
LIBUDP := $(OUT)/libxlink-udp.a
LIBHOUSE := $(OUT)/libhouse.a
# What tests and fuzzing harnesses share.
LIBTESTING := $(OUT)/libtesting.a
# The time-travel kernel is another build (make kernel); these start it, and run in it.
VKERNEL := $(BIN)/vkernel $(BIN)/vkernel-init $(BIN)/vkernel-seed.so
PROGRAMS := $(BIN)/mpshell $(BIN)/xlink-server $(BIN)/xlink-player $(BIN)/xlink-sim $(BIN)/udp-flow \
	$(BIN)/xlink-load $(BIN)/xlink-get $(BIN)/xlink-balancer $(BIN)/saturatr $(BIN)/mpshell-ctl $(BIN)/endpoint-bench \
	$(BIN)/link-bench $(BIN)/xlink-relay $(BIN)/tcp-relay $(BIN)/relay-run $(VKERNEL)

.PHONY: build
build: $(PROGRAMS) ## compile the C programs into build/bin

# Objects are made anew when the Makefile changes, which has their flags.
COMPILE = @mkdir -p $(@D) && echo "CC   $<" && $(CC) $(CFLAGS_ALL) $(PRIVATE) $(OF_TEST) -c $< -o $@

# A test's own code runs once: to optimise it would take longer than to run it. Under the sanitizers it checks accesses
# by calls, and undefined behaviour in it is a trap, which cmocka reports as an illegal instruction, without the reason:
# a third less to compile.
OF_TEST_CODE := -O0 $(if $(filter asan,$(VARIANT)),--param=asan-instrumentation-with-call-threshold=0 -fsanitize-undefined-trap-on-error)
$(OUT)/%_test.o: OF_TEST := $(OF_TEST_CODE)

# Objects of the libraries for other programs, and of the project's own: position independent, and only what the public
# headers declare is visible.
IN_LIBRARY := -fPIC -fvisibility=hidden -fno-semantic-interposition
UNIT = $(if $(LTO),$(LTO) -ffat-lto-objects -fomit-frame-pointer)
$(OUT)/transport/%.o: PRIVATE = -Itransport $(UNIT) $(IN_LIBRARY)
$(DRIVER_OBJ): PRIVATE = $(IN_LIBRARY)
UNIT_ROOMS := emulator/link emulator/sim lib/http lib/video player server
$(UNIT_ROOMS:%=$(OUT)/%/%.o): PRIVATE = $(UNIT)
$(OUT)/%.o: %.c Makefile
	$(COMPILE)
$(OUT)/%.o: $(GENERATED)/%.c Makefile
	$(COMPILE)

$(LIBXLINK): $(TRANSPORT_OBJ)
	@rm -f $@ && ar rcs $@ $^

$(LIBUDP): $(DRIVER_OBJ)
	@rm -f $@ && ar rcs $@ $^

$(LIBHOUSE): $(HOUSE_OBJ)
	@rm -f $@ && ar rcs $@ $^

$(LIBTESTING): $(TESTING_OBJ)
	@rm -f $@ && ar rcs $@ $^

# The libraries for other programs, libxlink (sans-IO) and libxlink-udp (its socket driver). Each archive holds one object,
# so that its inner names cannot clash with a program's. While the major version is 0, a minor version may change the
# interface, so the soname has both.
XL_VERSION := $(shell sed -n 's/^\#define XL_VERSION  *"\(.*\)"/\1/p' transport/include/xlink/xlink.h)
XL_SO := so.$(shell echo $(XL_VERSION) | cut -d. -f1,2)
LIBRARIES := libxlink libxlink-udp
LIB := $(OUT)/lib

SHARE = @mkdir -p $(@D) && echo "LD   $@" && $(CC) -shared $(LINK_LTO) -Wl,-soname,$(firstword $(subst .so., ,$(@F))).$(XL_SO) -Wl,-z,defs $(LDFLAGS)
$(LIB)/libxlink.so.$(XL_VERSION): $(TRANSPORT_OBJ)
	$(SHARE) $^ $(shell pkg-config --libs gnutls) $(GCM_LIBS) -lm -o $@
	@ln -sf $(@F) $(LIB)/libxlink.$(XL_SO) && ln -sf libxlink.$(XL_SO) $(LIB)/libxlink.so
$(LIB)/libxlink-udp.so.$(XL_VERSION): $(DRIVER_OBJ) $(LIB)/libxlink.so.$(XL_VERSION)
	$(SHARE) $(DRIVER_OBJ) -L$(LIB) -lxlink -o $@
	@ln -sf $(@F) $(LIB)/libxlink-udp.$(XL_SO) && ln -sf libxlink-udp.$(XL_SO) $(LIB)/libxlink-udp.so

ARCHIVE = @mkdir -p $(@D) && echo "AR   $@" && ld -r $^ -o $(@:.a=.o) && objcopy --localize-hidden $(if $(LTO),-R '.gnu.lto_*' -R '.gnu.debuglto_*') $(@:.a=.o) && rm -f $@ && ar rcs $@ $(@:.a=.o)
$(LIB)/libxlink.a: $(TRANSPORT_OBJ)
	$(ARCHIVE)
$(LIB)/libxlink-udp.a: $(DRIVER_OBJ)
	$(ARCHIVE)

LINK_LTO = $(if $(LTO),-fno-lto)
LINK = @mkdir -p $(@D) && echo "LD   $@" && $(CC) $(LDSAN) $(LDFLAGS) $(LINK_LTO) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,--as-needed $(PKG_LIBS) $(ALSO) -lm -o $@

$(BIN)/mpshell: $(OUT)/emulator/mpshell/main.o $(LIBHOUSE)
	$(LINK)
$(BIN)/saturatr: $(OUT)/emulator/saturatr/main.o $(LIBHOUSE) $(LIBXLINK)
	$(LINK)
$(BIN)/xlink-server: $(OUT)/server/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)
$(BIN)/xlink-player: $(OUT)/player/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)
# FAST_LINK=1 links it as it does the others: a slower program with the same outputs, in 1 s of processor time, not 20.
# A build without it replaces such a program.
FAST_LINKED := $(BIN)/.fast-linked
$(BIN)/xlink-sim: LINK_LTO = $(if $(LTO),$(if $(FAST_LINK),-fno-lto,$(LTO)))
$(BIN)/xlink-sim: $(OUT)/emulator/sim/main.o $(SIM_RANDOM) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK) $(if $(FAST_LINK),,$(if $(wildcard $(FAST_LINKED)),FORCE))
	$(LINK)
	@$(if $(FAST_LINK),touch,rm -f) $(FAST_LINKED)
$(BIN)/mpshell-ctl: $(OUT)/emulator/ctl/main.o
	$(LINK)
$(BIN)/udp-flow: $(OUT)/emulator/flow/main.o $(LIBHOUSE)
	$(LINK)

$(BIN)/xlink-load: $(OUT)/apps/load/main.o
$(BIN)/xlink-get: $(OUT)/apps/get/main.o
$(BIN)/xlink-balancer: $(OUT)/apps/balancer/main.o
$(BIN)/xlink-relay: $(OUT)/peers/libxlink/main.o
$(addprefix $(BIN)/xlink-,load get balancer relay): $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

$(BIN)/relay-run: $(OUT)/peers/run/main.o $(LIBHOUSE)
	$(LINK)

$(BIN)/tcp-relay: $(OUT)/peers/tcp/main.o $(LIBHOUSE) $(LIBXLINK)
	$(LINK)

# Relays over stacks that are installed elsewhere; `make peers` builds those whose folder is named. -isystem: their headers
# are not for our warnings.
$(OUT)/peers/picoquic/main.o: PRIVATE = $(if $(PICOQUIC_DIR),-isystem $(PICOQUIC_DIR)/include,$(error PICOQUIC_DIR names no build of picoquic))
# Its fast AEAD is a library of its own, which a build on x86-64 has by default.
PICOQUIC_AEAD = $(if $(wildcard $(PICOQUIC_DIR)/lib/libpicotls-fusion.a),picotls-fusion.a)
build/peers/picoquic/relay: $(OUT)/peers/picoquic/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK) $(addprefix $(PICOQUIC_DIR)/lib/lib,picoquic-core.a $(PICOQUIC_AEAD) picotls-openssl.a picotls-minicrypto.a picotls-core.a) -lssl -lcrypto

$(OUT)/peers/xquic/main.o: PRIVATE = $(if $(XQUIC_DIR),-isystem $(XQUIC_DIR)/include,$(error XQUIC_DIR names no build of XQUIC))
build/peers/xquic/relay: $(OUT)/peers/xquic/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK) $(addprefix $(XQUIC_DIR)/lib/lib,xquic-static.a ssl.a crypto.a) -lstdc++ -lpthread

$(BIN)/endpoint-bench: $(OUT)/apps/load/bench/main.o $(LIBXLINK)
	$(LINK)

$(BIN)/link-bench: $(OUT)/emulator/link/cost/main.o $(LIBHOUSE)
	$(LINK)

$(BIN)/vkernel: $(OUT)/emulator/kernel/main.o $(LIBHOUSE)
	$(LINK)

# Without sanitizers in every variant: the first process of a kernel is a static program, and the library is loaded
# into the kernel.
$(BIN)/vkernel-init: emulator/kernel/init/main.c emulator/kernel/job.h
	@mkdir -p $(@D) && echo "CC   $<" && $(CC) $(LANGUAGE) $(WARN) -O2 -static $< -o $@
$(BIN)/vkernel-seed.so: emulator/kernel/seed/seed.c emulator/kernel/job.h
	@mkdir -p $(@D) && echo "CC   $<" && $(CC) $(LANGUAGE) $(WARN) -O2 -fPIC -shared $< -o $@

$(TEST_BIN): ALSO := -lcmocka
$(TEST_BIN): $(OUT)/%: $(OUT)/%.o $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

# In this test allocations fail when it says so.
$(OUT)/transport/connection/tests/out_of_memory_test: LDFLAGS += -Wl,--wrap=calloc

# In this one HMAC does.
$(OUT)/transport/endpoint/reset_token_test: LDFLAGS += -Wl,--wrap=gnutls_hmac_fast

-include $(TRANSPORT_OBJ:.o=.d) $(DRIVER_OBJ:.o=.d) $(HOUSE_OBJ:.o=.d) $(SIM_RANDOM:.o=.d) $(TESTING_OBJ:.o=.d) $(TEST_BIN:=.d) $(patsubst %.c,$(OUT)/%.d,$(wildcard */main.c */*/main.c apps/*/*/main.c emulator/*/*/main.c))

include tests/fuzz/fuzz.mk

# The C tests run under AddressSanitizer and UndefinedBehaviorSanitizer.
.PHONY: c-test-programs
c-test-programs: $(TEST_BIN)

.PHONY: help
help: ## explain each target and, below it, the variables that it takes
	@awk -F' *[?:]= *' '/^## / { text = substr($$0, 4); next } \
		text != "" { variables = variables sprintf("      %-22s %s\n", $$1 "=" $$2, text); text = "" } \
		/^[a-z][a-z-]*:.*## / { split($$0, of, ":.*## "); printf "  %-18s %s\n%s", of[1], of[2], variables; variables = "" }' \
		$(filter %Makefile %.mk,$(MAKEFILE_LIST))

## some of browser, test, kernel, docker, fuzz, tidy, peers, machine: what is not needed to build and run
EXTRAS :=
# EXTRAS_TARGET is what that target takes. `setup` runs once, for all targets that were asked for.
.PHONY: setup
setup: ## install what is missing (Debian packages as root, Python packages into .venv)
	@scripts/setup.sh $(sort $(EXTRAS) $(foreach target,$(MAKECMDGOALS),$(EXTRAS_$(target))))

BUILD = +@$(MAKE) --no-print-directory -j$(JOBS) build

# Looking at pages and printing them takes a browser; building and running does not.
EXTRAS_report = $(if $(WITHIN)$(filter small,$(SIZE)),,kernel) browser
EXTRAS_peers := peers
EXTRAS_interop := peers
EXTRAS_kernel := kernel
EXTRAS_test-long := kernel browser test machine

# The kernel of the arena of that name, in a cache outside of the tree: emulator/kernel/build.sh.
## your own source of Linux: a folder or an archive
KERNEL_SOURCE ?=
.PHONY: kernel
kernel: setup ## build the time-travel kernel (8 minutes of processor time, once)
	@emulator/kernel/check-source.sh
	@emulator/kernel/build.sh

## 1: with the newest versions
UPGRADE :=
$(call check_on,lock,UPGRADE)
.PHONY: lock
lock: setup ## write requirements.lock anew after a change of pyproject.toml
	@CUSTOM_COMPILE_COMMAND='make lock' .venv/bin/pip-compile --quiet --extra dev --extra dask --extra notebook --extra serve --build-deps-for wheel \
		--allow-unsafe --strip-extras --generate-hashes --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--annotation-style line $(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml

.PHONY: demo
demo: setup ## the main job: an answer over twelve pairs in virtual time, two pairs live with kernel MPTCP, a page
	@JOBS=$(JOBS) scripts/demo.sh

# mpshell alone has threads: they write the logs, take commands, show figures, and measure how late timers and programs
# are. Its tests need the other programs as well; those are of the ordinary build.
TSAN_TESTS := $(addprefix tests/test_,mpshell_tools.py mpshell_awake.py mpshell_flows.py lateness.py real_time.py)

## all, c, python; threads (mpshell under ThreadSanitizer), peers (relays over other people's stacks), docker, stress (its scenarios without their mechanisms)
PART := all
PARTS := $(addprefix test-of-,all c python threads peers docker stress)
$(call check,test,PART,$(PARTS:test-of-%=%))
.PHONY: test
EXTRAS_test = $(if $(filter all python,$(PART)),browser test,$(filter peers docker,$(PART)))
test: test-of-$(strip $(PART)) ## lint, the C tests and fuzzing corpora under ASan and UBSan, Python and end-to-end tests

# Not one recipe that PART chooses: `make -n` would run all lines below one that begins with +.
.PHONY: $(PARTS)
$(PARTS): setup
# What a script runs: a line that has $(MAKE) itself is run by `make -n`, too.
BY_SCRIPT = $(MAKE) --no-print-directory
test-of-all:
	$(BUILD) --output-sync=target lint
	@scripts/run-py-tests.sh $(BY_SCRIPT) JOBS=1 test PART=c
test-of-c:
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=asan c-test-programs fuzz-programs
	@scripts/run-c-tests.sh build/asan
test-of-python:
	$(BUILD)
	@scripts/run-py-tests.sh
# A data race fails the test that has it. No test may be skipped.
test-of-threads:
	$(BUILD)
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=tsan build/tsan/bin/mpshell build/tsan/bin/mpshell-ctl
	@find build/bin -maxdepth 1 -type f ! -name mpshell ! -name mpshell-ctl -exec cp -u -t build/tsan/bin {} +
	@RAILYARD_REQUIRE_ALL=1 RAILYARD_BIN=$(CURDIR)/build/tsan/bin .venv/bin/python -m pytest -q $(TSAN_TESTS)
# Relays over stacks that a registry brings; with PART=all they are skipped where a stack is not built.
test-of-peers: peers
	$(BUILD)
	@RAILYARD_REQUIRE_PEERS=1 .venv/bin/python -m pytest tests/test_relays.py tests/test_interop_noq.py
# With an engine that is started where none runs.
test-of-docker:
	$(BUILD)
	@docker/with-engine.sh $(BY_SCRIPT) test-with-engine
# Those of the stress corpus: a mechanism is removed, and its scenarios must fail.
test-of-stress:
	$(BUILD)
	@.venv/bin/python scripts/stress-without.py

.PHONY: test-with-engine
test-with-engine:
	@$(MAKE) --no-print-directory docker IMAGE='client server tool $(if $(QUIC_INTEROP_RUNNER),interop)'
	@RAILYARD_REQUIRE_DOCKER=1 .venv/bin/python -m pytest -m docker -rs tests/test_docker_arena.py tests/test_interop_runner.py

.PHONY: test-long
test-long: setup ## the tests that take minutes each: `make test` leaves them out
	$(BUILD)
	@emulator/kernel/build.sh >/dev/null
	@RAILYARD_REQUIRE_KERNEL=1 .venv/bin/python -m pytest -m "long and not docker"

## some of c, python, and corpora: of tests/fuzz/ alone, by file
COVER := c python
$(call check,coverage,COVER,c python corpora,some)
.PHONY: coverage
EXTRAS_coverage = $(if $(filter corpora,$(COVER)),fuzz)
coverage: setup ## which lines the tests reach, by folder: a table, and pages in build/coverage/html
	$(if $(filter python,$(COVER)),$(BUILD))
	$(if $(filter c,$(COVER)),@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=coverage c-test-programs fuzz-programs)
	$(if $(filter corpora,$(COVER)),@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=fuzz-coverage fuzz-programs)
	@.venv/bin/python scripts/covered.py $(COVER)

# Other people's QUIC stacks. Every version is locked by the package manager that brings it.
.PHONY: peers
peers: setup ## fetch and build the foreign QUIC stacks that `make interop` speaks to
	@scripts/peers.sh

## this stack alone
PEER :=
## this test case alone
CASE :=
## 1: in virtual time, in a time-travel kernel
VIRTUAL :=
## seed of the links' random choices
SEED :=
## repetitions of each
TIMES :=
## 1: keep the other rows of the page
ADD :=
$(call check_on,interop,VIRTUAL)
$(call check_on,interop,ADD)
MATRIX = PYTHONPATH=tests .venv/bin/python -m interop.matrix $(PEER:%=--peer %) $(CASE:%=--case %) \
	$(if $(VIRTUAL),--virtual) $(SEED:%=--seed %) $(TIMES:%=--times %) $(if $(ADD),--add)
.PHONY: interop
interop: setup ## test cases x foreign QUIC stacks x directions: table, build/interop/matrix.html
	@$(MATRIX) --check
	@scripts/peers.sh
	$(BUILD)
	@$(MATRIX)

# Containers: railyard/client and railyard/server, or railyard/tool (the command, with what it starts in the arenas sim and
# mpshell) and railyard/interop (libxlink as quic-interop-runner wants an endpoint). BASE is the Debian 12 image below all;
# pin it by digest where a registry is at hand.
LOCAL_BASE := railyard/base:bookworm

## some of client, server, tool (the command), interop (for quic-interop-runner), base (what they stand on, by debootstrap)
IMAGE := client server
## IMAGE@sha256:…, a Debian 12 to stand on in place of that base
BASE :=
## Debian packages that go in too, for relays of other stacks
PACKAGES :=
$(call check,docker,IMAGE,base client server tool interop,some)

.PHONY: docker
docker: $(if $(filter tool,$(IMAGE)),wheel) ## build container images
	@$(if $(filter tool,$(IMAGE)),docker/wheels.sh build/image)
	@$(if $(filter base,$(IMAGE)),,$(if $(BASE),true,docker image inspect $(LOCAL_BASE) >/dev/null 2>&1) ||) docker/base.sh $(LOCAL_BASE)
	@$(if $(filter-out base,$(IMAGE)),docker/build.sh $(or $(BASE),$(LOCAL_BASE)) $(filter-out base,$(IMAGE)))

# Not after setup: nothing of this machine is used.
## targets of one root after a comma, of the next one after a blank
ORDER := demo,test test,demo
.PHONY: fresh-machine
fresh-machine: ## `make demo` and `make test` in bare Debian 12 roots, in both orders
	@scripts/fresh-machine.sh $(ORDER)

INSIDE := $(BIN)/vkernel-init $(BIN)/vkernel-seed.so
INSTALLED := $(filter-out %-bench $(INSIDE),$(PROGRAMS))
.PHONY: wheel
wheel: setup ## a wheel that has xlink-sim and its libraries in it: `pip install`, and the simulator runs (build/wheel)
	@$(MAKE) --no-print-directory -j$(JOBS) $(BIN)/xlink-sim
	@scripts/wheel.sh build/wheel

## an absolute folder
PREFIX ?= /usr/local
## a folder that PREFIX is put below, for packages
DESTDIR ?=
.PHONY: install
install: build $(foreach l,$(LIBRARIES),$(LIB)/$l.so.$(XL_VERSION) $(LIB)/$l.a) ## install programs with man pages and completion, libraries, headers
	@[[ "$(PREFIX)" == /* && "$(DESTDIR)$(PREFIX)" != *[[:space:]]* ]] || { echo "make install: PREFIX takes an" \
		"absolute folder without spaces, DESTDIR no spaces; not PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'." >&2; exit 2; }
	@install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/pkgconfig include/xlink)
	@install $(INSTALLED) $(DESTDIR)$(PREFIX)/bin
	@install -D -t $(DESTDIR)$(PREFIX)/libexec/railyard $(INSIDE)
	@install -m 644 transport/include/xlink/*.h lib/driver/include/xlink/*.h $(DESTDIR)$(PREFIX)/include/xlink
	@for l in $(LIBRARIES); do \
		install -m 644 $(LIB)/$$l.a $(LIB)/$$l.so.$(XL_VERSION) $(DESTDIR)$(PREFIX)/lib && \
		cp -P $(LIB)/$$l.$(XL_SO) $(LIB)/$$l.so $(DESTDIR)$(PREFIX)/lib; done
	@umask 022; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(XL_VERSION)|' -e 's|@GCM_LIBS@|$(GCM_LIBS)|' transport/libxlink.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/libxlink.pc
	@umask 022; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(XL_VERSION)|' lib/driver/libxlink-udp.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/libxlink-udp.pc
	@umask 022; python3 scripts/program-pages.py $(BIN) $(DESTDIR)$(PREFIX)/share $(XL_VERSION) $(notdir $(INSTALLED))
	@echo "installed below $(DESTDIR)$(PREFIX)"

C_FILES = $(shell git ls-files '*.c' '*.h')
# clang-tidy: the compiler's warnings are gcc's business. Relays over stacks that are not here cannot be read.
TIDY_FLAGS = $(LANGUAGE) -Itransport $(PKG_CFLAGS) $(addprefix -isystem ,$(addsuffix /include,$(PICOQUIC_DIR) $(XQUIC_DIR)))
TIDY_FILES = $(filter-out $(if $(PICOQUIC_DIR),,peers/picoquic/%) $(if $(XQUIC_DIR),,peers/xquic/%),$(filter %.c,$(C_FILES)))
## 1: also the checks of C that .clang-tidy names
TIDY :=
$(call check_on,lint,TIDY)
.PHONY: lint
EXTRAS_lint = $(if $(TIDY),tidy)
lint: setup ## clang-format, length of lines, ruff, mypy
	@clang-format --dry-run -Werror $(C_FILES)
	@! LC_ALL=C.UTF-8 grep -nE '.{121}' $(C_FILES) || { echo "These lines have more than 120 characters."; exit 1; }
	@! grep -nE '[!=]= NULL (&&|\|\||\?)|(&&|\|\|) [^()]* [!=]= NULL|(if|while) \([^()]* [!=]= NULL\)' $(C_FILES) || { echo "Write !p for p == NULL, and p for p != NULL, in a condition."; exit 1; }
	@.venv/bin/ruff check --quiet . && .venv/bin/ruff format --quiet --check .
	@.venv/bin/mypy
	@$(if $(TIDY),command -v clang-tidy >/dev/null || { echo "clang-tidy is missing; install the Debian package clang-tidy." >&2; exit 2; })
	@$(if $(TIDY),printf '%s\n' $(TIDY_FILES) | xargs -P$(JOBS) -n8 sh -c 'clang-tidy --quiet "$$@" -- $(TIDY_FLAGS) 2>/dev/null' clang-tidy)

.PHONY: format
format: setup ## rewrite the sources as lint wants them
	@clang-format -i $(C_FILES)
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --quiet .

## a revision to compare with
AGAINST :=
.PHONY: bench-instructions
bench-instructions: setup ## count the instructions of ten fixed jobs under callgrind
	@.venv/bin/python bench/instructions.py $(if $(AGAINST),--against $(AGAINST))

.PHONY: bench
bench: setup ## measure the simulator and links, endpoints with many connections, bulk transfers and relays, and mpshell
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@for study in simulator-speed connections 'bulk --size loopback' mpshell-lateness; do .venv/bin/railyard study $$study || exit; done

## small (a quick look), default or full
SIZE := default
$(call check,report,SIZE,small default full)
## a time, such as 5min: what can be made in it
WITHIN :=
$(if $(filter report,$(MAKECMDGOALS)),$(if $(WITHIN),$(if $(filter command%,$(origin SIZE)),$(error make report: WITHIN takes no SIZE; it chooses the sizes itself))))
.PHONY: report
report: setup ## every figure and table of the paper and all campaigns: results/report.html and .pdf
	$(BUILD)
	@$(if $(WITHIN),.venv/bin/railyard report --within "$(WITHIN)",scripts/report.sh $(SIZE))

.PHONY: docs
docs: setup ## write what code and kept results can write: the reference pages, and the tables of studies in docs/results
	$(BUILD)
	@.venv/bin/python scripts/reference_pages.py
	@.venv/bin/python -m railyard.studies.study

# Targets of version 0.2, and what does the same now.
NOW_test-c := test PART=c
NOW_test-py := test PART=python
NOW_tsan := test PART=threads
NOW_test-peers := test PART=peers
NOW_docker-test := test PART=docker
NOW_docker-base := docker IMAGE=base
NOW_tidy := lint TIDY=1
NOW_fuzz-seeds := fuzz DO=seeds
NOW_fuzz-merge := fuzz DO=merge
NOW_fuzz-coverage := coverage COVER=corpora
NOW_library := install PREFIX=FOLDER
MOVED := $(patsubst NOW_%,%,$(filter NOW_%,$(.VARIABLES)))
.PHONY: $(MOVED)
$(MOVED):
	$(error `make $@` is `make $(NOW_$@)` now)

.PHONY: clean
clean: ## remove what was built (results and .venv stay)
	rm -rf build
