/* A terminal of a low-earth-orbit constellation gets another satellite, or another beam, at the boundaries of intervals
 * that are the same for all terminals: Starlink's last 15 s and begin at 12, 27, 42 and 57 s of each minute (Mohan et
 * al., A Multifaceted Look at Starlink Performance, WWW 2024).
 *
 *     boundary    nothing passes for a pause: a packet that comes in it waits to its end. The pause is drawn for each
 *                 boundary, uniform from half of `pause` to one and a half of it.
 *     interval    the delay is that of the link, longer or shorter by a step that is drawn for each interval, uniform
 *                 within `step`
 *     burst       packets that reach the queue in the first `burst` after a boundary are lost with probability `loss`
 *
 * Times count from trace time 0, so that runs from other places of a trace see other boundaries. What is drawn depends
 * on the seed and the number of the interval alone. */
#ifndef RAILYARD_LINK_LEO_H
#define RAILYARD_LINK_LEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: no such intervals. */
typedef struct {
    uint64_t period_us, phase_us; /* the first boundary is at phase_us, and earlier ones a period each before it */
    uint64_t step_us;
    uint64_t pause_us;
    uint64_t burst_us;
    double loss;
} link_leo;

/* "starlink", "KEY=VALUE:..." with the keys period, phase, step, pause, burst (ms) and loss, both, or "off". What a
 * list without a preset does not name is 0, and period 15 s. A parser of settings, into a link_leo. */
bool link_leo_parse(void *leo, const char *text, char *wanted, size_t cap);
static inline bool link_leo_is_on(const link_leo *leo) {
    return leo->period_us > 0;
}
/* The delay of a packet that comes at trace time t_us over a link with this delay. */
uint64_t link_leo_delay(const link_leo *leo, uint64_t seed, uint64_t delay_us, uint64_t t_us);
/* The probability that a packet that reaches the queue at trace time t_us is lost. */
double link_leo_loss(const link_leo *leo, uint64_t t_us);

#endif
