/* Requests of other threads to the packet loop, which alone may use the links. A caller waits until the loop has
 * handled its request; the loop never waits for callers. */
#pragma once

#include <pthread.h>

#include "emulator/link/link.h"
#include "emulator/mpshell/shell.h"

/* The figures of all links at one moment. */
typedef struct {
    struct {
        link_stats stats;
        uint64_t late_p99_us;
        bool is_up;
    } links[MP_MAX_LINKS][2]; /* uplink, downlink */
} mp_figures;

typedef struct mp_request {
    size_t path;
    bool ways[2];       /* uplink, downlink */
    link_change change; /* its trace lives as long as the shell */
    bool asks_figures;
    bool has_interface; /* removes or restores the interface with its links, by change.is_up */
    mp_figures *figures;
    uint64_t done_us; /* answer: time of handling, us since t0 */
    bool done;
    struct mp_request *next;
} mp_request;

struct mp_mailbox {
    int fd; /* readable while a request waits */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    mp_request *waiting;
    bool open;
};

/* False with errno set. */
bool mp_mailbox_open(mp_mailbox *mailbox);
/* For other threads: waits until the request is handled. False if the loop has ended. */
bool mp_mailbox_ask(mp_mailbox *mailbox, mp_request *request);
/* For the loop: handles the requests at `now` (us since t0). */
void mp_mailbox_serve(mp_mailbox *mailbox, mp_shell *shell, uint64_t now);
/* Ends the mailbox: no request is handled from now on, and waiting callers return. */
void mp_mailbox_end(mp_mailbox *mailbox);
void mp_mailbox_close(mp_mailbox *mailbox);
