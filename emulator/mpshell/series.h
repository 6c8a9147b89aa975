/* Lateness over time: one value for each slot of 5 ms since t0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MP_SLOT_US 5000u

/* Starts zeroed. Slots without a record are 0. */
typedef struct {
    uint32_t *us;
    size_t count; /* slots up to the last one with a record */
    size_t room;
} mp_series;

/* Raises the slot of at_us (since t0) to `us`. Records nothing after 12 hours, or without memory. */
void mp_series_raise(mp_series *series, uint64_t at_us, uint64_t us);
/* Adds `us` to the slot of at_us. */
void mp_series_add(mp_series *series, uint64_t at_us, uint64_t us);
/* Returns the value of a slot. */
uint32_t mp_series_at(const mp_series *series, size_t slot);
/* Raises each slot of `into` to that of `from`. */
void mp_series_merge(mp_series *into, const mp_series *from);
void mp_series_free(mp_series *series);
