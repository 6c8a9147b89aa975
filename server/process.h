/* One serving process: the event loop, its services, its part of the log. xlink-server is one such process, or a parent
 * (server/workers.h) with several. */
#pragma once

#include <signal.h>

#include "base/jsonl.h"
#include "server/files.h"
#include "server/server.h"

#define SERVER_PROGRAM    "xlink-server"
#define SERVER_MAX_EVENTS 128
#define SERVER_SERVICES   2

struct server {
    server_config base;   /* the command line */
    server_config config; /* the command line, overridden by --params */
    xl_lb *lb;            /* NULL: the server is in no deployment */
    xl_deployment deployment;
    catalogue *catalogue;
    server_files files;
    catalogue_files file_table;
    jsonl *log;
    uint64_t start_us;
    uint64_t *connections;       /* shared by all workers */
    const server_worker *worker; /* NULL: the server is this process alone */
    sigset_t unblocked;          /* signals arrive only while waiting */
    int epoll, ready_count;
    void *ready; /* struct epoll_event[SERVER_MAX_EVENTS] of this round; an entry whose watch was removed is cleared */
    server_service *running[SERVER_SERVICES];
};

/* Signals that arrived; handlers set them, and the loops of parent and workers read them. */
typedef struct {
    volatile sig_atomic_t end, reload, child;
} server_signals;
extern server_signals server_signalled;
void server_catch_signals(sigset_t *unblocked);

/* Opens what all processes share: files to serve, the deployment, the parameters. False: the reason is on stderr. */
bool server_open(server *);
/* Reads --params again. False: the reason is on stderr, and nothing has changed. */
bool server_reload(server *);
void server_close(server *);

/* Starts the services and adds their addresses to *listening. False: the reason is on stderr. */
bool server_start(server *, json_t *listening);
/* Runs the loop until a signal ends it, then stops the services and adds up their totals. */
void server_run(server *);
void server_stop(server *, server_totals *);
