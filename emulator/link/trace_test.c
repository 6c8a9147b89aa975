#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"
#include "emulator/link/trace.h"

static bool parse(link_trace *trace, const char *text, char error[512]) {
    return link_trace_parse(trace, "some.trace", text, strlen(text), error, 512);
}

TEST(reads_one_timestamp_a_line) {
    link_trace trace;
    char error[512];
    assert_true(parse(&trace, "0\n3\n3\n10\n", error));
    assert_int_equal(trace.count, 4);
    assert_int_equal(trace.period_ms, 10);
    assert_int_equal(trace.at_ms[0], 0);
    assert_int_equal(trace.at_ms[2], 3);
    link_trace_free(&trace);
    assert_true(parse(&trace, "7", error)); /* no newline at the end of the file */
    assert_int_equal(trace.period_ms, 7);
    link_trace_free(&trace);
    assert_true(parse(&trace, "4294967295\n", error));
    assert_int_equal(trace.period_ms, UINT32_MAX);
    link_trace_free(&trace);
}

/* Short lines are read by different code than long ones and those at the end. */
TEST(reads_numbers_of_any_length) {
    static const char all[] = "0\n01\n1\n12\n0000123\n00000123\n987\n1234\n98765\n123456\n9876543\n12345678\n"
                              "987654321\n1234567890\n0000004000000000\n4294967295";
    static const uint32_t values[] = {0,     1,      1,       12,       123,       123,        987,         1234,
                                      98765, 123456, 9876543, 12345678, 987654321, 1234567890, 4000000000u, UINT32_MAX};
    size_t count = sizeof values / sizeof values[0];
    link_trace trace;
    char error[512];
    assert_true(parse(&trace, all, error));
    assert_int_equal(trace.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(trace.at_ms[i], values[i]);
    link_trace_free(&trace);
}

/* Any other byte at any place of a short line is an error, except a newline. */
TEST(any_other_byte_in_a_short_line_is_an_error) {
    for (int byte = 1; byte < 256; byte++) {
        for (size_t at = 0; at < 4; at++) {
            char text[] = "1111\n99999999\n", error[512];
            text[at] = (char)byte;
            link_trace trace;
            bool is_digit = byte >= '0' && byte <= '9', splits = byte == '\n' && at == 1;
            assert_int_equal(parse(&trace, text, error), is_digit || splits);
            link_trace_free(&trace);
        }
    }
}

TEST(names_file_and_line_of_every_error) {
    static const struct {
        const char *text;
        const char *where;
        const char *what;
    } cases[] = {
        {"", "some.trace:1:", "empty"},
        {"1\n\n2\n", "some.trace:2:", "blank line"},
        {"1\n2\n\n", "some.trace:3:", "blank line"},
        {"\n", "some.trace:1:", "blank line"},
        {"1\n2x\n", "some.trace:2:", "\"2x\""},
        {"1\n2 \n", "some.trace:2:", "\"2 \""},
        {" 1\n", "some.trace:1:", "\" 1\""},
        {"1\r\n2\r\n", "some.trace:1:", "CR LF"},
        {"-1\n", "some.trace:1:", "\"-1\""},
        {"+1\n", "some.trace:1:", "\"+1\""},
        {"1.5\n", "some.trace:1:", "\"1.5\""},
        {"5\n4\n", "some.trace:2:", "4 comes after 5"},
        {"0\n0\n", "some.trace:2:", "last timestamp is 0"},
        {"4294967296\n", "some.trace:1:", "4294967296"},
        {"99999999999999999999999\n", "some.trace:1:", "99999"},
        {"1\x01\x7fz\n", "some.trace:1:", "\"1??z\""}, /* characters that a terminal would not show */
        {"a2345678901234567890123456789012345678901\n",
         "some.trace:1:", "\"a234567890123456789012345678901234567890...\""},
        {"a234567890123456789012345678901234567890\n", "some.trace:1:", "\"a234567890123456789012345678901234567890\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        link_trace trace;
        char error[512] = "";
        assert_false(parse(&trace, cases[i].text, error));
        assert_memory_equal(error, cases[i].where, strlen(cases[i].where));
        assert_non_null(strstr(error, cases[i].what));
        assert_null(trace.at_ms);
    }
}

TEST(long_traces_are_read_to_their_end) {
    char *text = malloc(5000 * 8), *at = text;
    for (unsigned i = 1; i <= 5000; i++)
        at += sprintf(at, "%u\n", i);
    link_trace trace;
    char error[256];
    assert_true(link_trace_parse(&trace, "t", text, (size_t)(at - text), error, sizeof error));
    assert_int_equal(trace.count, 5000);
    assert_int_equal(trace.period_ms, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(trace.at_ms[i], i + 1);
    link_trace_free(&trace);
    assert_null(trace.at_ms);
    free(text);
}

TEST(a_byte_of_zero_is_an_error_and_not_the_end) {
    link_trace trace;
    char error[512];
    assert_false(link_trace_parse(&trace, "t", "1\n2\0003\n", 6, error, sizeof error));
    assert_non_null(strstr(error, "t:2:"));
}

TEST(opportunities_repeat_after_the_last_timestamp) {
    link_trace trace;
    char error[512];
    assert_true(parse(&trace, "0\n4\n10\n", error));
    static const uint64_t expected[] = {0, 4, 10, 10, 14, 20, 20, 24, 30};
    for (uint64_t k = 0; k < 9; k++)
        assert_int_equal(link_trace_opportunity_us(&trace, k), 1000 * expected[k]);
    link_trace_free(&trace);
}

TEST(counts_as_a_walk_over_the_opportunities_does) {
    static const char *const texts[] = {
        "0\n4\n10\n",   "1\n",           "3\n3\n3\n",
        "0\n0\n5\n5\n", "2\n9\n9\n17\n", "0\n1\n1\n1\n2\n2\n3\n4\n5\n6\n6\n6\n6\n6\n7\n8\n9\n10\n11\n12\n"};
    for (size_t i = 0; i < 6; i++) {
        link_trace trace;
        char error[512];
        assert_true(parse(&trace, texts[i], error));
        uint64_t walked = 0;
        for (uint64_t t = 0; t < 100; t++) {
            while (link_trace_opportunity_us(&trace, walked) <= 1000 * t)
                walked++;
            assert_int_equal(link_trace_count_near(&trace, 0, 1000 * t), walked);
            assert_int_equal(link_trace_count_near(&trace, 0, 1000 * t + 999), walked);
            for (uint64_t near = 0; near < walked + 20; near++)
                assert_int_equal(link_trace_count_near(&trace, near, 1000 * t), walked);
        }
        link_trace_free(&trace);
    }
}

TEST(reads_files_and_says_why_not) {
    char name[] = "/tmp/trace_test.XXXXXX";
    char error[512];
    char *data = NULL;
    size_t length = 0;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1\n2\n", 4), 4);
    close(fd);
    assert_true(link_trace_read_file(name, &data, &length, error, sizeof error));
    assert_int_equal(length, 4);
    assert_string_equal(data, "1\n2\n");
    free(data);
    unlink(name);
    assert_false(link_trace_read_file(name, &data, &length, error, sizeof error));
    assert_non_null(strstr(error, name));
    assert_false(link_trace_read_file("/tmp", &data, &length, error, sizeof error));
    assert_non_null(strstr(error, "directory"));
}

TEST_MAIN(NULL, NULL)
