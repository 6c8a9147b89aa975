#include <stdio.h>
#include <string.h>

#include "tests/unit.h"
#include "get/summary.h"

static char text[GET_SUMMARY_BYTES];

TEST(a_line_has_files_size_time_rate_and_paths) {
    get_summary s = {.complete = 1, .count = 1, .bytes = 5000000, .us = 1430000, .paths = 1, .received = {5140000}};
    s.local[0] = (xl_addr){.family = 4, .ip = {192, 0, 2, 1}};
    get_summary_text(&s, text);
    assert_string_equal(text, "1 file, 5.00 MB in 1.43 s, 28.0 Mbit/s, over 1 path: 5.14 MB by 192.0.2.1");
    s = (get_summary){.complete = 2, .count = 3, .bytes = 999, .us = 8000000, .paths = 2, .received = {1000, 0}};
    s.local[0] = (xl_addr){.family = 6, .ip = {0x20, 1, 0xd, 0xb8, [15] = 1}};
    s.local[1] = (xl_addr){.family = 6, .ip = {0x20, 1, 0xd, 0xb8, [15] = 2}};
    get_summary_text(&s, text);
    assert_string_equal(text, "2 of 3 files, 999 B in 8.00 s, 999 bit/s, over 2 paths: 1.00 kB by 2001:db8::1, "
                              "0 B by 2001:db8::2");
}

TEST(numbers_have_three_digits_at_least_and_a_prefix) {
    const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},
                 {9, "9 B"},
                 {999, "999 B"},
                 {1004, "1.00 kB"},
                 {9996, "10.0 kB"},
                 {99960, "100 kB"},
                 {999499, "999 kB"},
                 {999500, "1.00 MB"},
                 {2000000000, "2.00 GB"},
                 {UINT64_C(7) * 1000 * 1000 * 1000 * 1000 * 1000, "7000 TB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const get_summary s = {.complete = 1, .count = 1, .bytes = cases[i].bytes, .us = 1000000};
        char wanted[64];
        const int n = snprintf(wanted, sizeof wanted, "1 file, %s in 1.00 s", cases[i].text);
        get_summary_text(&s, text);
        assert_memory_equal(text, wanted, (size_t)n);
    }
}

TEST(many_long_addresses_fit) {
    get_summary s = {.complete = 4095, .count = 4096, .bytes = 1, .us = 86400000000, .paths = XL_MAX_PATHS};
    for (size_t i = 0; i < XL_MAX_PATHS; i++) {
        s.local[i].family = 6;
        memset(s.local[i].ip, 0xfe, sizeof s.local[i].ip);
        s.received[i] = UINT64_C(999) << 40;
    }
    get_summary_text(&s, text);
    assert_string_equal(text + strlen(text) - 5, ":fefe");
}

TEST_MAIN(NULL, NULL)
