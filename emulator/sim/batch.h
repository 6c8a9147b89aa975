/* xlink-sim --batch: many runs of one process, one after the other.
 *
 * Each line of standard input is JOB.json, a tab and DIR. Each run has its standard error in DIR/sim.stderr, and its
 * exit status is a line of standard output. So libraries are linked, memory is mapped and traces are parsed once. A run
 * that dies ends the process: whoever wrote its line starts another for the next one. */
#ifndef RAILYARD_SIM_BATCH_H
#define RAILYARD_SIM_BATCH_H

/* `run` returns the exit status. Returns at the end of standard input, or at a line that is none: 0, or 2. */
int sim_batch_serve(int (*run)(const char *job, const char *directory));

#endif
