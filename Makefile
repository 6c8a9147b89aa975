# Railyard: the front door. `make help` lists the targets.
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
LINK = @mkdir -p $(@D) && echo "LD   $@" && $(CC) $(LDSAN) $(LDFLAGS) $(LINK_LTO) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,--as-needed $(PKG_LIBS) -lm -o $@

$(BIN)/mpshell: $(OUT)/emulator/mpshell/main.o $(LIBHOUSE)
	$(LINK)
$(BIN)/saturatr: $(OUT)/emulator/saturatr/main.o $(LIBHOUSE)
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

$(BIN)/xlink-load: $(OUT)/apps/load/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

$(BIN)/xlink-get: $(OUT)/apps/get/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

$(BIN)/xlink-balancer: $(OUT)/apps/balancer/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	$(LINK)

$(BIN)/relay-run: $(OUT)/peers/run/main.o $(LIBHOUSE)
	$(LINK)

$(BIN)/xlink-relay: $(OUT)/peers/libxlink/main.o $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
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

$(TEST_BIN): $(OUT)/%: $(OUT)/%.o $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK)
	@echo "LD   $@"
	@$(CC) $(LDSAN) $(LDFLAGS) $(LINK_LTO) $< -Wl,--start-group $(LIBTESTING) $(LIBHOUSE) $(LIBUDP) $(LIBXLINK) -Wl,--end-group $(PKG_LIBS) -lcmocka -lm -o $@

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
help: ## explain each target
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## /{printf "  %-12s %s\n",$$1,$$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what is missing (Debian packages as root, Python packages into .venv)
	@scripts/setup.sh $(EXTRAS)

# Looking at pages and printing them takes a browser; building and running does not.
report: EXTRAS := $(if $(WITHIN)$(filter small,$(SIZE)),,kernel )browser
test test-py: EXTRAS := browser test
peers interop test-peers: EXTRAS := peers
docker-test: EXTRAS := docker
kernel: EXTRAS := kernel
test-long: EXTRAS := kernel browser test machine

# The kernel of the arena of that name, in a cache outside of the tree: emulator/kernel/build.sh.
.PHONY: kernel
kernel: setup ## build the time-travel kernel (8 minutes of processor time, once; KERNEL_SOURCE=DIR: your own source)
	@emulator/kernel/check-source.sh
	@emulator/kernel/build.sh

UPGRADE ?=
.PHONY: lock
lock: setup ## write requirements.lock anew after a change of pyproject.toml (UPGRADE=1: with the newest versions)
	@CUSTOM_COMPILE_COMMAND='make lock' .venv/bin/pip-compile --quiet --extra dev --extra dask --extra notebook --extra serve --build-deps-for wheel \
		--allow-unsafe --strip-extras --generate-hashes --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--annotation-style line $(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml

.PHONY: demo
demo: setup ## the main job: an answer over twelve pairs in virtual time, two pairs live with kernel MPTCP, a page
	@JOBS=$(JOBS) scripts/demo.sh

.PHONY: test
test: setup ## everything is tested: lint, C tests under the sanitizers, Python and end-to-end tests
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target build lint
	@scripts/run-py-tests.sh $(MAKE) --no-print-directory JOBS=1 test-c

.PHONY: test-c
test-c: setup ## the C unit tests and the fuzzing corpora, under ASan and UBSan
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=asan c-test-programs fuzz-programs
	@scripts/run-c-tests.sh build/asan
	@scripts/fuzz.sh replay build/asan

.PHONY: test-py
test-py: setup ## the Python tests: command lines, arenas, interoperability, reports
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@scripts/run-py-tests.sh

# mpshell alone has threads: they write the logs, take commands, show figures, and measure how late timers and programs
# are. Its tests need the other programs as well; those are of the ordinary build. No test may be skipped.
TSAN_TESTS := $(addprefix tests/test_,mpshell_tools.py mpshell_awake.py mpshell_flows.py lateness.py real_time.py)

.PHONY: tsan
tsan: setup ## the threads of mpshell under ThreadSanitizer: a data race fails the test that has it
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=tsan build/tsan/bin/mpshell build/tsan/bin/mpshell-ctl
	@find build/bin -maxdepth 1 -type f ! -name mpshell ! -name mpshell-ctl -exec cp -u -t build/tsan/bin {} +
	@RAILYARD_REQUIRE_ALL=1 RAILYARD_BIN=$(CURDIR)/build/tsan/bin .venv/bin/python -m pytest -q $(TSAN_TESTS)

COVER ?= c python
.PHONY: coverage
coverage: setup ## which lines the tests reach, by room: a table, and pages in build/coverage/html (COVER=c: C only)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=coverage c-test-programs fuzz-programs
	@scripts/coverage.sh $(COVER)

# Other people's QUIC stacks. Every version is locked by the package manager that brings it.
.PHONY: peers
peers: setup ## fetch and build the foreign QUIC stacks that `make interop` speaks to
	@scripts/peers.sh

PEER ?=
CASE ?=
.PHONY: interop
interop: setup peers ## test cases x foreign QUIC stacks x directions: table, build/interop/matrix.html (PEER=NAME CASE=NAME VIRTUAL=1 SEED=N TIMES=N ADD=1)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@PYTHONPATH=tests .venv/bin/python -m interop.matrix $(PEER:%=--peer %) $(CASE:%=--case %) \
		$(if $(VIRTUAL),--virtual) $(SEED:%=--seed %) $(TIMES:%=--times %) $(if $(ADD),--add)

# Those of stacks that a registry brings; in `make test` they are skipped where a stack is not built.
.PHONY: test-peers
test-peers: setup peers ## the tests of relays over foreign QUIC stacks
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@RAILYARD_REQUIRE_PEERS=1 .venv/bin/python -m pytest tests/test_relays.py tests/test_interop_noq.py

.PHONY: test-long
test-long: setup ## the tests that take minutes each: `make test` leaves them out
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@emulator/kernel/build.sh >/dev/null
	@RAILYARD_REQUIRE_KERNEL=1 .venv/bin/python -m pytest -m "long and not docker"

# Containers: railyard/client and railyard/server, or railyard/tool (the command, with what it starts in the arenas sim and
# mpshell) and railyard/interop (libxlink as quic-interop-runner wants an endpoint). BASE is the Debian 12 image below all;
# pin it by digest where a registry is at hand.
IMAGE ?= client server
BASE ?=
LOCAL_BASE := railyard/base:bookworm

.PHONY: docker
docker: $(if $(filter tool,$(IMAGE)),wheel) ## build images: client and server (IMAGE=tool or interop: others; BASE=IMAGE@sha256:… pins what they stand on)
	@$(if $(filter tool,$(IMAGE)),docker/wheels.sh build/image)
	@$(if $(BASE),true,docker image inspect $(LOCAL_BASE) >/dev/null 2>&1 || $(MAKE) --no-print-directory docker-base)
	@docker/build.sh $(or $(BASE),$(LOCAL_BASE)) $(IMAGE)

.PHONY: docker-base
docker-base: ## make that base image by debootstrap, where no registry is at hand
	@docker/base.sh $(LOCAL_BASE)

.PHONY: docker-test
docker-test: setup ## all tests of the containers, with an engine that is started for them where none runs
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@docker/with-engine.sh $(MAKE) --no-print-directory docker-test-with-engine

.PHONY: docker-test-with-engine
docker-test-with-engine:
	@$(MAKE) --no-print-directory docker IMAGE='client server tool $(if $(QUIC_INTEROP_RUNNER),interop)'
	@RAILYARD_REQUIRE_DOCKER=1 .venv/bin/python -m pytest -m docker -rs tests/test_docker_arena.py tests/test_interop_runner.py

# Not after setup: nothing of this machine is used.
ORDER ?= demo,test test,demo
.PHONY: fresh-machine
fresh-machine: ## `make demo` and `make test` in bare Debian 12 roots, in both orders (ORDER=test,demo: one root, these targets)
	@scripts/fresh-machine.sh $(ORDER)

PREFIX ?= /usr/local
DESTDIR ?=
INSIDE := $(BIN)/vkernel-init $(BIN)/vkernel-seed.so
INSTALLED := $(filter-out %-bench $(INSIDE),$(PROGRAMS))
.PHONY: library
library: $(foreach l,$(LIBRARIES),$(LIB)/$l.so.$(XL_VERSION) $(LIB)/$l.a) ## compile libxlink and libxlink-udp for other programs: build/release/lib

.PHONY: wheel
wheel: setup ## a wheel that has xlink-sim and its libraries in it: `pip install`, and the simulator runs (build/wheel)
	@$(MAKE) --no-print-directory -j$(JOBS) $(BIN)/xlink-sim
	@scripts/wheel.sh build/wheel

.PHONY: install
install: build library ## install programs with man pages and completion, libraries, headers (PREFIX=/usr/local DESTDIR=)
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
.PHONY: lint
lint: setup ## clang-format, length of lines, ruff, mypy
	@clang-format --dry-run -Werror $(C_FILES)
	@! LC_ALL=C.UTF-8 grep -nE '.{121}' $(C_FILES) || { echo "These lines have more than 120 characters."; exit 1; }
	@! grep -nE '[!=]= NULL (&&|\|\||\?)|(&&|\|\|) [^()]* [!=]= NULL|(if|while) \([^()]* [!=]= NULL\)' $(C_FILES) || { echo "Write !p for p == NULL, and p for p != NULL, in a condition."; exit 1; }
	@.venv/bin/ruff check --quiet . && .venv/bin/ruff format --quiet --check .
	@.venv/bin/mypy

# The compiler's warnings are gcc's business. Relays over stacks that are not here cannot be read.
TIDY_FLAGS = $(LANGUAGE) -Itransport $(PKG_CFLAGS) $(addprefix -isystem ,$(addsuffix /include,$(PICOQUIC_DIR) $(XQUIC_DIR)))
TIDY_FILES = $(filter-out $(if $(PICOQUIC_DIR),,peers/picoquic/%) $(if $(XQUIC_DIR),,peers/xquic/%),$(filter %.c,$(C_FILES)))
.PHONY: tidy
tidy: EXTRAS := tidy
tidy: setup ## check the C sources by the checks that .clang-tidy names
	@command -v clang-tidy >/dev/null || { echo "clang-tidy is missing."; exit 2; }
	@printf '%s\n' $(TIDY_FILES) | xargs -P$(JOBS) -n8 sh -c 'clang-tidy --quiet "$$@" -- $(TIDY_FLAGS) 2>/dev/null' clang-tidy

.PHONY: format
format: setup ## rewrite the sources as lint wants them
	@clang-format -i $(C_FILES)
	@.venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --quiet .

AGAINST ?=
.PHONY: bench-instructions
bench-instructions: setup ## count the instructions of ten fixed jobs under callgrind (AGAINST=REV: compare with it)
	@.venv/bin/python bench/instructions.py $(if $(AGAINST),--against $(AGAINST))

.PHONY: bench
bench: setup ## measure the simulator and links, endpoints with many connections, bulk transfers and relays, and mpshell
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@for study in simulator-speed connections 'bulk --size loopback' mpshell-lateness; do .venv/bin/railyard study $$study || exit; done

SIZE ?= default
.PHONY: report
report: setup ## every figure and table of the paper and all campaigns: results/report.html and .pdf (WITHIN=5min: what a time allows; SIZE=small: a quick look)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@$(if $(WITHIN),.venv/bin/railyard report --within "$(WITHIN)",scripts/report.sh $(SIZE))

.PHONY: docs
docs: setup ## write what code and kept results can write: the reference pages, and the tables of studies in docs/results
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@.venv/bin/python scripts/reference_pages.py
	@.venv/bin/python -m railyard.studies.study

.PHONY: clean
clean: ## remove what was built (results and .venv stay)
	rm -rf build
