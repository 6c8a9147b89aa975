/* xlink-sim --batch: many runs of one process.
 *
 * Each line of standard input is JOB.json, a tab and DIR. Each run is done by a copy of this process, with its standard
 * error in DIR/sim.stderr, and its exit status, or the negative number of the signal that ended it, is a line of
 * standard output. So libraries are linked and traces are parsed once, and a run that dies ends no other. */
#ifndef RAILYARD_SIM_BATCH_H
#define RAILYARD_SIM_BATCH_H

typedef struct {
    /* Called before each run, in the process that stays. */
    void (*prepare)(const char *job);
    /* Returns the exit status. */
    int (*run)(const char *job, const char *directory);
} sim_batch;

/* Returns at the end of standard input, or at a line that is none: 0, or 2. */
int sim_batch_serve(const sim_batch *);

#endif
