#include "http/reinjection_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

static void what_is_not_given_stays(void **state) {
    (void)state;
    xl_scheme c, before;
    xl_scheme_init(&c);
    c.qoe_control = c.reinjection_unconditional = c.no_qoe_extrapolation = true;
    c.qoe_carrier = XL_QOE_IN_SIGNALS;
    before = c;
    reinjection_options_apply(&(reinjection_options){0}, &c);
    assert_memory_equal(&before, &c, sizeof c);
}

static void every_word_has_its_meaning(void **state) {
    (void)state;
    static const xl_qoe_carrier carriers[] = {XL_QOE_OFF, XL_QOE_IN_ACK, XL_QOE_IN_SIGNALS, XL_QOE_IN_BOTH};
    xl_scheme c;
    xl_scheme_init(&c);
    assert_int_equal(XL_QOE_IN_ACK, c.qoe_carrier);
    for (int i = 0; qoe_carriers[i]; i++) {
        reinjection_options_apply(&(reinjection_options){.qoe = qoe_carriers[i]}, &c);
        assert_int_equal(carriers[i], c.qoe_carrier);
    }
    reinjection_options_apply(
        &(reinjection_options){.copy_rule = "always", .qoe_control = "on", .qoe_extrapolation = "off"}, &c);
    assert_true(c.reinjection_unconditional && c.qoe_control && c.no_qoe_extrapolation);
    reinjection_options_apply(
        &(reinjection_options){.copy_rule = "pays", .qoe_control = "off", .qoe_extrapolation = "on"}, &c);
    assert_false(c.reinjection_unconditional || c.qoe_control || c.no_qoe_extrapolation);
    reinjection_options_apply(&(reinjection_options){.max_reinjections = 3}, &c);
    assert_int_equal(3, c.max_reinjections);
}

static void rescue_can_be_switched_and_sized(void **state) {
    (void)state;
    xl_scheme c;
    xl_scheme_init(&c);
    assert_int_equal(0, c.rescue_gain_us);
    reinjection_options_apply(&(reinjection_options){.rescue = "on"}, &c);
    assert_true(c.rescue_gain_us == RESCUE_GAIN_US && c.rescue_permille == RESCUE_PERMILLE);
    reinjection_options_apply(&(reinjection_options){.rescue_gain_ms = 200, .rescue_permille = 5}, &c);
    assert_true(c.rescue_gain_us == 200000 && c.rescue_permille == 5);
    reinjection_options_apply(&(reinjection_options){.rescue = "on"}, &c);
    assert_int_equal(200000, c.rescue_gain_us);
    reinjection_options_apply(&(reinjection_options){.rescue = "off"}, &c);
    assert_int_equal(0, c.rescue_gain_us);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_stays),
        cmocka_unit_test(every_word_has_its_meaning),
        cmocka_unit_test(rescue_can_be_switched_and_sized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
