#include "congestion/congestion.h"

#include <string.h>

const xl_cc_ops *xl_cc_find(const char *name) {
    for (size_t i = 0; name && xl_ccs[i]; i++)
        if (strcmp(xl_ccs[i]->name, name) == 0)
            return xl_ccs[i];
    return NULL;
}

const char *xl_cc_name(size_t i) {
    for (size_t k = 0; xl_ccs[k]; k++)
        if (k == i)
            return xl_ccs[k]->name;
    return NULL;
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
