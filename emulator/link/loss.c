#include "emulator/link/loss.h"

#include <string.h>

#include "base/error.h"
#include "emulator/link/text.h"

static bool is_probability(double value) {
    return value >= 0.0 && value <= 1.0;
}

bool link_loss_is_valid(const link_loss *loss) {
    return is_probability(loss->good) && is_probability(loss->bad) && is_probability(loss->p) &&
           is_probability(loss->r);
}

#define PROBABILITY(member) SETTING_PROBABILITY, SETTING_FIELD(link_loss, member)
static const setting rows[] = {
    {"p", PROBABILITY(p)}, {"r", PROBABILITY(r)}, {"good", PROBABILITY(good)}, {"bad", PROBABILITY(bad)}, {0}};

bool link_loss_parse(void *loss, const char *text, char *wanted, size_t cap) {
    const bool is_chain = strncmp(text, "ge:", 3) == 0;
    link_loss parsed = {.bad = is_chain ? 1.0 : 0.0};
    bool given[sizeof rows / sizeof rows[0]] = {false};
    const bool good = is_chain ? link_text_read(rows, &parsed, text + 3, given) && given[0] && given[1]
                               : number_parse_probability(text, strlen(text), &parsed.good);
    if (!good)
        return error_set(wanted, cap, "a probability (0 to 1) or ge:p=P:r=P[:good=P][:bad=P]");
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
