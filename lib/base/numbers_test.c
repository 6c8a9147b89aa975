#include <string.h>

#include "tests/unit.h"
#include "base/numbers.h"

TEST(whole_numbers_are_digits_alone) {
    uint64_t n = 0;
    assert_true(number_parse("0", 1, &n) && n == 0);
    assert_true(number_parse("0042", 4, &n) && n == 42);
    assert_true(number_parse("9999999999999999999", 19, &n) && n == UINT64_C(9999999999999999999));
    n = 7;
    static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.0", "1e3", "10000000000000000000"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(number_parse(wrong[i], strlen(wrong[i]), &n));
    assert_int_equal(n, 7);
}

TEST(only_the_given_length_is_read) {
    uint64_t n = 0;
    assert_true(number_parse("123-456", 3, &n) && n == 123);
    assert_false(number_parse("123-456", 4, &n));
    assert_false(number_parse("1", 0, &n));
}

TEST(decimals_are_parsed_as_exact_thousandths) {
    uint64_t n = 0;
    assert_true(number_parse_milli("30", &n) && n == 30000);
    assert_true(number_parse_milli("29.97", &n) && n == 29970);
    assert_true(number_parse_milli("12.05", &n) && n == 12050);
    assert_true(number_parse_milli("0.001", &n) && n == 1);
    assert_true(number_parse_milli("9999999999999999.999", &n) && n == UINT64_C(9999999999999999999));
    n = 7;
    static const char *const wrong[] = {"",       ".",
                                        "1.",     ".5",
                                        "1.2345", "-1",
                                        "1e3",    "nan",
                                        "1.2.3",  " 1",
                                        "1. ",    "12345678901234567",
                                        "1.-5",   "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(number_parse_milli(wrong[i], &n));
    assert_int_equal(n, 7);
}

TEST(reads_the_hexadecimal_that_it_writes) {
    const uint8_t bytes[4] = {0x00, 0x9f, 0xff, 0x10};
    uint8_t back[4];
    char text[9];
    hex_write(bytes, 4, text);
    assert_string_equal(text, "009fff10");
    assert_true(hex_read(text, back, 4));
    assert_memory_equal(bytes, back, 4);
    assert_false(hex_read(NULL, back, 4));
    assert_false(hex_read("009fff1", back, 4));
    assert_false(hex_read("009fff1g", back, 4));
    assert_false(hex_read("009fff1000", back, 4));
}

TEST_MAIN(NULL, NULL)
