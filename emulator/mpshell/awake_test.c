#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit.h"
#include "emulator/mpshell/awake_probe.h"
#include "emulator/mpshell/awake_share.h"
#include "emulator/mpshell/machine.h"

/* ---- is it worth it */

static mp_awake_probe probe_of(double without_us, double with_us) {
    return (mp_awake_probe){.made = true, .without.p95_us = without_us, .with.p95_us = with_us};
}

TEST(it_is_worth_a_third_and_30_us) {
    mp_awake_probe good = probe_of(150, 72);
    mp_awake_probe small_share = probe_of(1000, 710);
    mp_awake_probe small_gain = probe_of(60, 31);
    mp_awake_probe just = probe_of(60, 30);
    mp_awake_probe worse = probe_of(80, 500);
    assert_true(mp_awake_is_worth(&good));
    assert_false(mp_awake_is_worth(&small_share));
    assert_false(mp_awake_is_worth(&small_gain));
    assert_true(mp_awake_is_worth(&just));
    assert_false(mp_awake_is_worth(&worse));
}

TEST(without_a_probe_it_is_not_worth_it) {
    mp_awake_probe none = probe_of(1000, 10);
    none.made = false;
    assert_false(mp_awake_is_worth(&none));
}

TEST(quantiles_are_by_nearest_rank) {
    double samples[150];
    for (size_t i = 0; i < 150; i++)
        samples[i] = 150.0 - (double)i;
    mp_awake_lateness found = mp_awake_quantiles(samples, 150);
    assert_true(found.p50_us == 75 && found.p95_us == 143 && found.p99_us == 149);
    found = mp_awake_quantiles(samples, 0);
    assert_true(found.p50_us == 0 && found.p95_us == 0 && found.p99_us == 0);
}

typedef struct {
    bool awake;
    size_t changes;
} core_turns;

static void count_turn(void *context, bool awake) {
    core_turns *turns = context;
    assert_true(awake != turns->awake);
    turns->awake = awake;
    turns->changes++;
}

TEST(a_measurement_takes_turns_and_ends_without) {
    core_turns turns = {.awake = false};
    mp_awake_probe probe = {.made = false};
    mp_awake_measure(&probe, count_turn, &turns);
    assert_true(probe.made);
    assert_false(turns.awake);
    assert_int_equal(turns.changes, 6);
    assert_true(probe.without.p50_us > 0 && probe.without.p50_us <= probe.without.p95_us);
    assert_true(probe.with.p95_us <= probe.with.p99_us);
}

/* ---- what is shared */

static char root[] = "/tmp/awake-test-XXXXXX";

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static const char *below(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *out = fopen(below(name), "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

TEST(one_holds_a_core_and_the_next_takes_it_over) {
    bool first;
    bool second;
    bool third;
    int folder = mp_awake_open_folder(below("share/awake"));
    assert_true(folder >= 0);
    int a = mp_awake_open_core(folder, 3, &first);
    int b = mp_awake_open_core(folder, 3, &second);
    assert_true(a >= 0 && b >= 0 && first);
    assert_false(second);
    close(b);
    close(a);
    int c = mp_awake_open_core(folder, 3, &third);
    assert_true(third);
    close(c);
    close(folder);
}

TEST(a_folder_that_others_may_write_is_not_used) {
    assert_int_equal(mkdir(below("open"), 0777), 0);
    assert_int_equal(chmod(below("open"), 0777), 0);
    assert_int_equal(mp_awake_open_folder(below("open/awake")), -1);
    assert_int_equal(mkdir(below("aside"), 0755), 0);
    assert_int_equal(symlink(root, below("aside/awake")), 0);
    assert_int_equal(mp_awake_open_folder(below("aside/awake")), -1);
}

TEST(a_probe_counts_for_a_minute_and_the_same_cores) {
    const mp_awake_probe made = {
        .made = true, .sched_fifo = true, .without = {41, 150.5, 204}, .with = {40, 60.25, 70}};
    mp_awake_probe read = {.made = false};
    int folder = mp_awake_open_folder(below("share/awake"));
    int fd = mp_awake_open_probe(folder);
    assert_true(fd >= 0);
    assert_false(mp_awake_read_probe(fd, &read, 2, 5000000)); /* no probe yet */
    mp_awake_write_probe(fd, &made, 2, 5000000);
    assert_true(mp_awake_read_probe(fd, &read, 2, 64000000));
    assert_true(read.sched_fifo && read.age_s == 59 && read.without.p95_us == 150.5 && read.with.p99_us == 70);
    assert_true(mp_awake_is_worth(&read));
    assert_false(mp_awake_read_probe(fd, &read, 2, 66000000)); /* too old */
    assert_false(mp_awake_read_probe(fd, &read, 4, 6000000));  /* another number of cores */
    assert_false(mp_awake_read_probe(fd, &read, 2, 4000000));  /* before a reboot */
    close(fd);
    close(folder);
}

/* ---- quotas */

static void make_group(const char *name, const char *file, const char *text) {
    char path[128];
    mkdir(below(name), 0755);
    snprintf(path, sizeof path, "%s/%s", name, file);
    write_file(path, text);
}

static bool has_quota(const char *groups, size_t cores) {
    char proc[256];
    char sys[256];
    mkdir(below("proc"), 0755);
    mkdir(below("proc/self"), 0755);
    write_file("proc/self/cgroup", groups);
    snprintf(proc, sizeof proc, "%s", below("proc"));
    snprintf(sys, sizeof sys, "%s", below("sys"));
    return mp_awake_has_quota(proc, sys, cores);
}

TEST(a_quota_below_the_cores_is_found_in_any_group_above) {
    mkdir(below("sys"), 0755);
    make_group("sys/a", "cpu.max", "200000 100000\n");
    make_group("sys/a/b", "cpu.max", "max 100000\n");
    assert_true(has_quota("0::/a/b\n", 4));
    assert_false(has_quota("0::/a/b\n", 2)); /* the quota covers two cores */
    assert_false(has_quota("0::/\n", 4));
    assert_false(has_quota("", 4));
}

TEST(a_quota_of_the_old_groups_is_found) {
    mkdir(below("sys"), 0755);
    mkdir(below("sys/cpu,cpuacct"), 0755);
    make_group("sys/cpu,cpuacct/box", "cpu.cfs_quota_us", "50000\n");
    make_group("sys/cpu,cpuacct/box", "cpu.cfs_period_us", "100000\n");
    make_group("sys/cpu,cpuacct/free", "cpu.cfs_quota_us", "-1\n");
    assert_true(has_quota("4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n", 1));
    assert_false(has_quota("3:cpu,cpuacct:/free\n0::/\n", 1));
    assert_false(has_quota("3:cpuset,memory:/box\n0::/\n", 1));
}

/* ---- what the processors did */

static bool is_near(double found, double expected) {
    return found > expected - 1e-9 && found < expected + 1e-9;
}

TEST(processor_time_is_told_by_kind) {
    static const char before[] = "cpu  100 10 50 900 5 1 4 30 20 10\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
    static const char after[] = "cpu  300 10 150 950 5 1 4 80 40 10\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
    mp_machine first = mp_machine_parse(before, 100);
    mp_machine last = mp_machine_parse(after, 100);
    mp_machine between = mp_machine_between(&first, &last);
    assert_true(between.known);
    assert_int_equal(between.cores, 2);
    assert_true(is_near(between.busy_s, 3) && is_near(between.steal_s, 0.5) && is_near(between.guest_s, 0.2));
    assert_false(mp_machine_parse("intr 5\n", 100).known);
    assert_true(mp_machine_read().known);
}

TEST_MAIN(make_root, remove_root)
