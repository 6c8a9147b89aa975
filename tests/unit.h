/* C unit tests with cmocka. TEST(name) { ... } defines a test that registers itself. A test program is one source file
 * and ends with TEST_MAIN(setup, teardown), which runs its tests in the order of their lines. setup and teardown may be
 * NULL. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define UNIT_MOST_TESTS 64

static struct CMUnitTest unit_tests[UNIT_MOST_TESTS];
static int unit_lines[UNIT_MOST_TESTS];
static size_t unit_count;

/* Sorts by line, because the order of constructors is not defined. */
static inline void unit_register(int line, struct CMUnitTest test) {
    if (unit_count == UNIT_MOST_TESTS)
        __builtin_trap();
    size_t at = unit_count++;
    for (; at > 0 && unit_lines[at - 1] > line; at--) {
        unit_lines[at] = unit_lines[at - 1];
        unit_tests[at] = unit_tests[at - 1];
    }
    unit_lines[at] = line;
    unit_tests[at] = test;
}

#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                                               \
    static void name(void **state);                                                                                    \
    __attribute__((constructor)) static void unit_register_##name(void) {                                              \
        unit_register(__LINE__, (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, setup, teardown));            \
    }                                                                                                                  \
    static void name(__attribute__((unused)) void **state)

/* TEST_MADE(name, type, variable, make, release) { ... } defines a test with a `type *variable`, all zero at first,
 * which is passed to `make` before the test and to `release` after it. TEST_OF has no `make`. */
#define TEST_MADE(name, type, variable, make, release)                                                                 \
    static void name##_of(type *variable);                                                                             \
    TEST(name) {                                                                                                       \
        type made = {0};                                                                                               \
        make(&made);                                                                                                   \
        name##_of(&made);                                                                                              \
        release(&made);                                                                                                \
    }                                                                                                                  \
    static void name##_of(type *variable)
#define TEST_OF(name, type, variable, release) TEST_MADE(name, type, variable, (void), release)
/* The same with the variable's value, such as the result of a call. */
#define TEST_NEW(name, type, variable, value, release)                                                                 \
    static void name##_of(type *variable);                                                                             \
    TEST(name) {                                                                                                       \
        type *made = value;                                                                                            \
        name##_of(made);                                                                                               \
        release(made);                                                                                                 \
    }                                                                                                                  \
    static void name##_of(type *variable)

#define TEST_MAIN(setup, teardown)                                                                                     \
    int main(void) {                                                                                                   \
        return _cmocka_run_group_tests("tests", unit_tests, unit_count, setup, teardown);                              \
    }
