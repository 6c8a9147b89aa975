#include "congestion/congestion.h"

#include "xlink/xlink.h"

#include <string.h>

/* The registry: a new controller is one file and one line here. */
static const xl_cc_ops *const registry[] = {
    &xl_cc_cubic, &xl_cc_cubic_tolerant, &xl_cc_newreno, &xl_cc_lia, &xl_cc_olia, &xl_cc_balia, &xl_cc_bbr,
};

const xl_cc_ops *xl_cc_find(const char *name) {
    for (size_t i = 0; name && i < sizeof registry / sizeof registry[0]; i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}

const char *xl_congestion_name(size_t i) {
    return i < sizeof registry / sizeof registry[0] ? registry[i]->name : NULL;
}

uint64_t xl_cc_minimum_window(uint64_t mtu_bytes) {
    return 2 * mtu_bytes;
}

uint64_t xl_cc_initial_window(uint64_t mtu_bytes) {
    uint64_t least = xl_cc_minimum_window(mtu_bytes);
    uint64_t window = least > 14720 ? least : 14720;
    return 10 * mtu_bytes < window ? 10 * mtu_bytes : window;
}

double xl_cc_window_for_mtu(double window, uint64_t old_mtu, uint64_t new_mtu) {
    double least = (double)xl_cc_minimum_window(new_mtu);
    window += (double)xl_cc_initial_window(new_mtu) - (double)xl_cc_initial_window(old_mtu);
    return window > least ? window : least;
}
