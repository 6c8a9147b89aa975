#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit.h"
#include "base/json_text.h"
#include "base/jsonl.h"

static char file[] = "/tmp/railyard-jsonl-XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(file);
    return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state) {
    (void)state;
    return remove(file);
}

/* Checks that the next line has the members of `expected` in this order. Takes its reference. */
static void check_line(FILE *in, json_t *expected) {
    char *text = json_dumps(expected, JSON_TEXT_FLAGS), *line = NULL;
    size_t size = 0;
    ssize_t n = getline(&line, &size, in);
    assert_int_equal(n, strlen(text) + 1);
    assert_int_equal(line[n - 1], '\n');
    assert_memory_equal(line, text, strlen(text));
    free(text);
    free(line);
    json_decref(expected);
}

TEST(time_and_event_come_first_however_long_a_record_is) {
    char long_text[3000];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    jsonl *log = jsonl_open(file, 1000000);
    assert_non_null(log);
    jsonl_write(log, "short", json_pack("{s:i, s:s}", "b", 1, "a", "x"), 2500000);
    jsonl_write(log, "alone", NULL, 500000);
    jsonl_write(log, "empty", json_object(), 1000001);
    jsonl_write(log, "long", json_pack("{s:s}", "text", long_text), 1000000);
    for (size_t n = 900; n < 1024; n++) { /* around the longest line that is written in one piece */
        long_text[n] = 0;
        jsonl_write(log, "edge", json_pack("{s:s}", "text", long_text), 1000000);
        long_text[n] = 'a';
    }
    assert_true(jsonl_close(log));

    FILE *in = fopen(file, "r");
    assert_non_null(in);
    check_line(in, json_pack("{s:f, s:s, s:i, s:s}", "t", 1.5, "event", "short", "b", 1, "a", "x"));
    check_line(in, json_pack("{s:f, s:s}", "t", 0.0, "event", "alone"));
    check_line(in, json_pack("{s:f, s:s}", "t", 1e-6, "event", "empty"));
    check_line(in, json_pack("{s:f, s:s, s:s}", "t", 0.0, "event", "long", "text", long_text));
    for (size_t n = 900; n < 1024; n++) {
        long_text[n] = 0;
        check_line(in, json_pack("{s:f, s:s, s:s}", "t", 0.0, "event", "edge", "text", long_text));
        long_text[n] = 'a';
    }
    assert_int_equal(fgetc(in), EOF);
    fclose(in);
}

TEST(a_shared_log_says_which_worker_wrote) {
    jsonl *log = jsonl_open_shared(file, 0, -1);
    assert_true(jsonl_close(log));
    log = jsonl_open_shared(file, 0, 3);
    jsonl_write(log, "one", json_pack("{s:b}", "yes", 1), 2000000);
    assert_true(jsonl_close(log));
    FILE *in = fopen(file, "r");
    check_line(in, json_pack("{s:f, s:s, s:i, s:b}", "t", 2.0, "event", "one", "worker", 3, "yes", 1));
    fclose(in);
}

TEST(the_reason_of_the_first_failure_is_known_at_the_end) {
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    jsonl *log = jsonl_open(file, 0);
    assert_non_null(log);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    jsonl_write(log, "one", NULL, 0);
    const bool is_written = jsonl_flush(log);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(is_written);
    errno = EAGAIN; /* of another call */
    assert_false(jsonl_close(log));
    assert_int_equal(errno, EFBIG);
}

TEST_MAIN(make_file, remove_file)
