#include "emulator/link/loss.h"

#include <stdio.h>
#include <string.h>

#include "emulator/link/text.h"

static bool is_probability(double value) {
    return value >= 0.0 && value <= 1.0;
}

bool link_loss_is_valid(const link_loss *loss) {
    return is_probability(loss->good) && is_probability(loss->bad) && is_probability(loss->p) &&
           is_probability(loss->r);
}

static bool parse_chain(link_loss *loss, const char *list) {
    link_text_option o;
    const struct {
        const char *key;
        double *value;
    } members[] = {{"p", &loss->p}, {"r", &loss->r}, {"good", &loss->good}, {"bad", &loss->bad}};
    bool has[4] = {false, false, false, false};
    while (link_text_next_option(&list, &o)) {
        size_t i = 0;
        while (i < 4 && !link_text_option_is(&o, members[i].key))
            i++;
        if (i == 4 || has[i] || !number_parse_probability(o.value, o.value_length, members[i].value))
            return false;
        has[i] = true;
    }
    return has[0] && has[1];
}

bool link_loss_parse(void *loss, const char *text, char *wanted, size_t cap) {
    link_loss parsed = {0};
    bool good;
    if (strncmp(text, "ge:", 3) == 0) {
        parsed.bad = 1.0;
        good = parse_chain(&parsed, text + 3);
    } else {
        good = number_parse_probability(text, strlen(text), &parsed.good);
    }
    if (!good) {
        snprintf(wanted, cap, "a probability (0 to 1) or ge:p=P:r=P[:good=P][:bad=P]");
        return false;
    }
    *(link_loss *)loss = parsed;
    return true;
}

bool link_loss_next(link_loss_state *state) {
    const link_loss *m = &state->model;
    if (m->p > 0.0 || state->is_bad) {
        double move = link_rng_uniform(&state->moves);
        state->is_bad = state->is_bad ? !(move < m->r) : move < m->p;
    }
    double loss = state->is_bad ? m->bad : m->good;
    bool draws = m->good > 0.0 || (m->p > 0.0 && m->bad > 0.0) || state->is_bad;
    return draws && link_rng_uniform(&state->losses) < loss;
}
