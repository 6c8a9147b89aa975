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
    for (int i = 0; o->qoe && qoe_carriers[i]; i++)
        if (strcmp(o->qoe, qoe_carriers[i]) == 0)
            config->qoe_carrier = (xl_qoe_carrier)i;
}
