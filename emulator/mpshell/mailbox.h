/* Requests of other threads to the packet loop, which alone may touch the links. A caller waits until the loop has done
 * what it asked for; the loop never waits. */
#ifndef RAILYARD_MPSHELL_MAILBOX_H
#define RAILYARD_MPSHELL_MAILBOX_H

#include <pthread.h>

#include "emulator/link/change.h"
#include "emulator/mpshell/shell.h"

/* The figures of all links at one moment. */
struct mp_figures {
    struct {
        struct link_stats stats;
        uint64_t late_p99_us;
        bool is_up;
    } links[MP_MAX_PATHS][2]; /* uplink, downlink */
};

struct mp_request {
    size_t path;
    bool ways[2];              /* uplink, downlink */
    struct link_change change; /* its trace lives as long as the shell */
    bool asks_figures;
    bool has_interface; /* the interface goes or returns with its links, as change.is_up says */
    struct mp_figures *figures;
    uint64_t done_us; /* answer: when, since t0 */
    bool done;
    struct mp_request *next;
};

struct mp_mailbox {
    int fd; /* readable while a request waits */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct mp_request *waiting;
    bool open;
};

/* Returns 0, or -1 with errno set. */
int mp_mailbox_open(struct mp_mailbox *mailbox);
/* For other threads: false if the loop has ended. */
bool mp_mailbox_ask(struct mp_mailbox *mailbox, struct mp_request *request);
/* For the loop: does what is asked, at now (us since t0). */
void mp_mailbox_serve(struct mp_mailbox *mailbox, struct mp_shell *shell, uint64_t now);
/* From now on nothing is done any more; those who wait go on. */
void mp_mailbox_end(struct mp_mailbox *mailbox);
void mp_mailbox_close(struct mp_mailbox *mailbox);

#endif
