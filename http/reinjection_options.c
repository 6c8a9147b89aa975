#include "http/reinjection_options.h"

#include <string.h>

const char *const copy_rules[] = {"pays", "always", NULL};
const char *const qoe_carriers[] = {"off", "ack", "signals", "both", NULL}; /* in the order of xl_qoe_carrier */
const char *const on_or_off[] = {"off", "on", NULL};

static bool is_on(const char *word) {
    return strcmp(word, "on") == 0;
}

void reinjection_options_apply(const reinjection_options *o, xl_config *config) {
    if (o->max_reinjections)
        config->max_reinjections = (uint8_t)o->max_reinjections;
    if (o->copy_rule)
        config->reinjection_unconditional = strcmp(o->copy_rule, "always") == 0;
    if (o->qoe_control)
        config->qoe_control = is_on(o->qoe_control);
    if (o->qoe_extrapolation)
        config->no_qoe_extrapolation = !is_on(o->qoe_extrapolation);
    if (o->rescue && is_on(o->rescue) && config->rescue_gain_us == 0) {
        config->rescue_gain_us = RESCUE_GAIN_US;
        config->rescue_permille = RESCUE_PERMILLE;
    }
    if (o->rescue_gain_ms)
        config->rescue_gain_us = o->rescue_gain_ms * 1000;
    if (o->rescue_permille)
        config->rescue_permille = (unsigned)o->rescue_permille;
    if (o->rescue && !is_on(o->rescue))
        config->rescue_gain_us = 0;
    for (int i = 0; o->qoe && qoe_carriers[i]; i++)
        if (strcmp(o->qoe, qoe_carriers[i]) == 0)
            config->qoe_carrier = (xl_qoe_carrier)i;
}
