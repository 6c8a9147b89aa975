/* xlink-sim --batch: many runs in one process, one after another.
 *
 * Each line of standard input is JOB.json, a tab and DIR. The run's standard error goes to DIR/sim.stderr, and its exit
 * status is a line of standard output. So libraries are linked, memory is mapped and traces are parsed once. A run that
 * dies ends the process: the caller starts another process for the next line. */
#pragma once

/* `run` returns a run's exit status. Returns 0 at the end of standard input, 2 at an invalid line. */
int sim_batch_serve(int (*run)(const char *job, const char *directory));
