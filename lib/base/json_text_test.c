#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "base/json_text.h"

/* Checks that the text is that of the library. Takes the value's reference. */
static void check(json_t *value) {
    char *expected = json_dumps(value, JSON_TEXT_FLAGS | JSON_ENCODE_ANY), out[512];
    size_t n = json_text(value, out, sizeof out);
    assert_non_null(expected);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(out, expected, n);
    assert_int_equal(json_text(value, out, n - 1), 0);
    free(expected);
    json_decref(value);
}

TEST(numbers_are_written_as_the_library_writes_them) {
    const double edges[] = {0,      -0.0,    1e-7,    1e-6,      9.9e-5, 0.0001, 0.1,  0.5,           1,
                            1.5,    10,      99.9999, 1234567.5, 1e6,    999999, 1e12, 999999.999999, 0.123456789,
                            -12.25, 1.0 / 3, 1e300,   5e-324};
    const json_int_t whole[] = {0, 9, 10, -1, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check(json_real(edges[i]));
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        check(json_integer(whole[i]));
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        check(json_real((double)(random >> (24 + i % 40)) / (i % 2 ? 1e6 : 1e3)));
    }
}

TEST(records_are_written_as_the_library_writes_them) {
    check(json_object());
    check(json_pack("{s:f, s:s, s:{s:n, s:b, s:b, s:[i, f, s]}, s:I}", "t", 1.25, "event", "say \"\\ \x01 \u00e4",
                    "more", "nothing", "yes", 1, "no", 0, "list", -3, 0.5, "", "bytes", (json_int_t)1 << 40));
}

TEST_MAIN(NULL, NULL)
