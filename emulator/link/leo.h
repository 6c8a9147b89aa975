/* A terminal of a low-earth-orbit constellation changes its satellite or beam at interval boundaries that all terminals
 * share. Starlink's intervals last 15 s and begin at 12, 27, 42 and 57 s of each minute (Mohan et al., A Multifaceted
 * Look at Starlink Performance, WWW 2024).
 *
 *     boundary    nothing passes for a pause: a packet that comes in it waits for its end. The pause is drawn for each
 *                 boundary, uniform in 0.5 `pause` to 1.5 `pause`
 *     interval    a step is added to the link's delay; it is drawn for each interval, uniform in -`step` to `step`
 *     burst       packets that reach the queue in the first `burst` after a boundary are lost with probability `loss`
 *
 * Times count from trace time 0, so that runs from other positions of a trace see other boundaries. Draws depend only
 * on the seed and the number of the interval. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: no intervals. */
typedef struct {
    uint64_t period_us, phase_us; /* boundaries are at phase_us + k period_us, for every integer k */
    uint64_t step_us;
    uint64_t pause_us;
    uint64_t burst_us;
    double loss;
} link_leo;

/* Parses "starlink", "KEY=VALUE:..." with the keys period, phase, step, pause, burst (ms) and loss, both, or "off" into
 * a link_leo. Without the preset, keys default to 0, and period to 15 s. */
bool link_leo_parse(void *leo, const char *text, char *wanted, size_t cap);
static inline bool link_leo_is_on(const link_leo *leo) {
    return leo->period_us > 0;
}
/* Returns the delay of a packet that comes at trace time t_us, if the link's own delay is delay_us. */
uint64_t link_leo_delay(const link_leo *leo, uint64_t seed, uint64_t delay_us, uint64_t t_us);
/* Returns the probability that a packet that reaches the queue at trace time t_us is lost. */
double link_leo_loss(const link_leo *leo, uint64_t t_us);
