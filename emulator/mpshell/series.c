#include "emulator/mpshell/series.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SLOTS  (12u * 3600u * (1000000u / MP_SLOT_US))
#define FIRST_SLOTS 4096u

static uint32_t *slot_of(mp_series *series, size_t slot) {
    if (slot >= MOST_SLOTS)
        return NULL;
    if (slot >= series->room) {
        size_t room = series->room ? series->room : FIRST_SLOTS;
        while (room <= slot)
            room *= 2;
        uint32_t *grown = realloc(series->us, room * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + series->room, 0, (room - series->room) * sizeof *grown);
        series->us = grown;
        series->room = room;
    }
    series->count = slot >= series->count ? slot + 1 : series->count;
    return &series->us[slot];
}

static uint32_t limited(uint64_t us) {
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void mp_series_raise(mp_series *series, uint64_t at_us, uint64_t us) {
    uint32_t *slot = slot_of(series, (size_t)(at_us / MP_SLOT_US));
    if (slot && us > *slot)
        *slot = limited(us);
}

void mp_series_add(mp_series *series, uint64_t at_us, uint64_t us) {
    uint32_t *slot = slot_of(series, (size_t)(at_us / MP_SLOT_US));
    if (slot)
        *slot = limited(*slot + us);
}

uint32_t mp_series_at(const mp_series *series, size_t slot) {
    return slot < series->count ? series->us[slot] : 0;
}

void mp_series_merge(mp_series *into, const mp_series *from) {
    for (size_t i = 0; i < from->count; i++)
        mp_series_raise(into, (uint64_t)i * MP_SLOT_US, from->us[i]);
}

void mp_series_free(mp_series *series) {
    free(series->us);
    memset(series, 0, sizeof *series);
}
