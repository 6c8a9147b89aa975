/* Lateness over time: one figure for each slot of 5 ms since t0. */
#ifndef RAILYARD_MPSHELL_SERIES_H
#define RAILYARD_MPSHELL_SERIES_H

#include <stddef.h>
#include <stdint.h>

#define MP_SLOT_US 5000u

/* Starts zeroed. Slots that nothing was recorded for are 0. */
typedef struct {
    uint32_t *us;
    size_t count; /* slots up to the last that something was recorded for */
    size_t room;
} mp_series;

/* The slot of at_us (since t0) keeps the largest of its figures. What lies after 12 hours, or finds no memory, is not
 * recorded. */
void mp_series_raise(mp_series *series, uint64_t at_us, uint64_t us);
/* The slot of at_us keeps the sum of its figures. */
void mp_series_add(mp_series *series, uint64_t at_us, uint64_t us);
/* 0 where nothing was recorded. */
uint32_t mp_series_at(const mp_series *series, size_t slot);
/* Each slot of `into` keeps the larger figure. */
void mp_series_merge(mp_series *into, const mp_series *from);
void mp_series_free(mp_series *series);

#endif
