#include "emulator/saturatr/convert.h"

#include <string.h>

#include "emulator/link/packet.h"

void sat_converter_init(sat_converter *converter, uint64_t duration_us) {
    memset(converter, 0, sizeof *converter);
    converter->duration_us = duration_us;
    converter->last_idle_bin = UINT64_MAX;
}

static void count_idle(sat_converter *converter, uint64_t t_us, uint64_t queued_us) {
    uint64_t bin = t_us / SAT_IDLE_BIN_US;
    if (queued_us < SAT_IDLE_QUEUE_US && bin != converter->last_idle_bin) {
        converter->idle_bins++;
        converter->last_idle_bin = bin;
    }
}

uint32_t sat_converter_add(sat_converter *converter, int64_t t_us, uint32_t ip_bytes, uint64_t queued_us,
                           uint32_t *at_ms) {
    if (t_us < 0 || (uint64_t)t_us >= converter->duration_us)
        return 0;
    uint64_t t = (uint64_t)t_us;
    if (t < converter->last_us) {
        converter->disordered++;
        t = converter->last_us; /* a trace never decreases */
    }
    converter->last_us = t;
    count_idle(converter, t, queued_us);
    converter->packets++;
    converter->bytes += ip_bytes + LINK_HEADER_BYTES;
    converter->carry_bytes += ip_bytes + LINK_HEADER_BYTES;
    uint32_t complete = (uint32_t)(converter->carry_bytes / LINK_OPPORTUNITY_BYTES);
    converter->carry_bytes %= LINK_OPPORTUNITY_BYTES;
    converter->opportunities += complete;
    *at_ms = (uint32_t)(t / 1000);
    return complete;
}

uint32_t sat_converter_finish(sat_converter *converter) {
    converter->opportunities++;
    converter->carry_bytes = 0;
    return (uint32_t)((converter->duration_us + 999) / 1000);
}
