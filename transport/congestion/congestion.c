#include "congestion/congestion.h"

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
