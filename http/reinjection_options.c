#include "http/reinjection_options.h"

#include <string.h>

const char *const copy_rules[] = {"pays", "always", NULL};
const char *const qoe_carriers[] = {"off", "ack", "signals", "both", NULL}; /* in the order of xl_qoe_carrier */
const char *const on_or_off[] = {"off", "on", NULL};

static bool is_on(const char *word) {
    return strcmp(word, "on") == 0;
}

void reinjection_options_apply(const reinjection_options *o, xl_scheme *scheme) {
    if (o->max_reinjections)
        scheme->max_reinjections = (uint8_t)o->max_reinjections;
    if (o->copy_rule)
        scheme->reinjection_unconditional = strcmp(o->copy_rule, "always") == 0;
    if (o->qoe_control)
        scheme->qoe_control = is_on(o->qoe_control);
    if (o->qoe_extrapolation)
        scheme->no_qoe_extrapolation = !is_on(o->qoe_extrapolation);
    if (o->rescue && is_on(o->rescue) && scheme->rescue_gain_us == 0) {
        scheme->rescue_gain_us = RESCUE_GAIN_US;
        scheme->rescue_permille = RESCUE_PERMILLE;
    }
    if (o->rescue_gain_ms)
        scheme->rescue_gain_us = o->rescue_gain_ms * 1000;
    if (o->rescue_permille)
        scheme->rescue_permille = (unsigned)o->rescue_permille;
    if (o->rescue && !is_on(o->rescue))
        scheme->rescue_gain_us = 0;
    for (int i = 0; o->qoe && qoe_carriers[i]; i++)
        if (strcmp(o->qoe, qoe_carriers[i]) == 0)
            scheme->qoe_carrier = (xl_qoe_carrier)i;
}
