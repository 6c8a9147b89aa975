#include "emulator/sim/members.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/sim/job.h"

#define SHOWN_BYTES 48 /* of a wrong value in an error */

bool sim_fail(char *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, SIM_ERROR_BYTES, format, args);
    va_end(args);
    return false;
}

/* "…, not 1.5": the value that was given. */
static bool wrong(const char *where, const char *name, json_t *value, const char *wanted, char *error) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    size_t length = text != NULL ? strlen(text) : 0;
    sim_fail(error, "%s%s takes %s, not %.*s%s", where, name, wanted, SHOWN_BYTES, text != NULL ? text : "this",
             length > SHOWN_BYTES ? "…" : "");
    free(text);
    return false;
}

static bool read_whole(const struct sim_member *m, json_t *value, void *into) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    uint64_t n = (uint64_t)json_integer_value(value);
    memcpy(into, &n, sizeof n);
    return n >= m->least && n <= m->most;
}

/* A number with at most three decimals as thousandths: exact, whatever its binary form is. */
static bool read_thousandths(const struct sim_member *m, json_t *value, uint64_t scale, void *into) {
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!(number >= 0) || number > 1e12) {
        return false;
    }
    double thousandths = nearbyint(number * 1000.0);
    if (fabs(thousandths - number * 1000.0) > 1e-6 * (1.0 + thousandths * 1e-6)) {
        return false;
    }
    uint64_t n = (uint64_t)thousandths;
    bool inside = n >= m->least && n <= m->most;
    n *= scale;
    memcpy(into, &n, sizeof n);
    return inside;
}

static bool read_word(const struct sim_member *m, json_t *value, void *into) {
    for (size_t i = 0; json_is_string(value) && m->words[i] != NULL; i++) {
        if (strcmp(m->words[i], json_string_value(value)) == 0) {
            memcpy(into, &m->words[i], sizeof m->words[i]);
            return true;
        }
    }
    return false;
}

static bool read_value(const struct sim_member *m, json_t *value, void *into) {
    double probability = json_is_number(value) ? json_number_value(value) : -1;
    const char *text = json_string_value(value);
    bool truth = json_is_true(value);
    switch (m->kind) {
    case SIM_WHOLE:
        return read_whole(m, value, into);
    case SIM_THOUSANDTHS:
        return read_thousandths(m, value, 1, into);
    case SIM_SECONDS:
        return read_thousandths(m, value, 1000, into);
    case SIM_PROBABILITY:
        memcpy(into, &probability, sizeof probability);
        return probability >= 0 && probability <= 1;
    case SIM_BOOLEAN:
        memcpy(into, &truth, sizeof truth);
        return json_is_boolean(value);
    case SIM_STRING:
        memcpy(into, &text, sizeof text);
        return text != NULL && text[0] != '\0' && strlen(text) == json_string_length(value);
    case SIM_WORD:
        return read_word(m, value, into);
    case SIM_OTHER:
        return true;
    }
    return false;
}

/* What the member takes, for people. */
static void describe(const struct sim_member *m, char *out, size_t cap) {
    switch (m->kind) {
    case SIM_WHOLE:
        snprintf(out, cap, "a whole number from %" PRIu64 " to %" PRIu64, m->least, m->most);
        break;
    case SIM_THOUSANDTHS:
    case SIM_SECONDS:
        snprintf(out, cap, "a number from %g to %.12g with at most three decimals", (double)m->least / 1e3,
                 (double)m->most / 1e3);
        break;
    case SIM_PROBABILITY:
        snprintf(out, cap, "a probability, 0 to 1");
        break;
    case SIM_BOOLEAN:
        snprintf(out, cap, "true or false");
        break;
    case SIM_WORD:
        out[0] = '\0';
        for (size_t i = 0; m->words[i] != NULL; i++) {
            snprintf(out + strlen(out), cap - strlen(out), "%s\"%s\"", i > 0 ? " or " : "", m->words[i]);
        }
        break;
    default:
        snprintf(out, cap, "a text");
        break;
    }
}

bool sim_members_read(json_t *object, const char *where, const struct sim_member *table, void *into, char *error) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const struct sim_member *m = table;
        while (m->name != NULL && strcmp(m->name, key) != 0) {
            m++;
        }
        if (m->name == NULL) {
            return sim_fail(error, "%s%.*s is not a known member; docs/sim.md lists them", where, SHOWN_BYTES, key);
        }
        char wanted[160];
        if (!json_is_null(value) && !read_value(m, value, (char *)into + m->offset)) {
            describe(m, wanted, sizeof wanted);
            return wrong(where, key, value, wanted, error);
        }
    }
    return true;
}
