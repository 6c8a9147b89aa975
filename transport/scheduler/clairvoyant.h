/* Input of the clairvoyant scheduler from a connection. */
#pragma once

#include "recovery/pacer.h"
#include "scheduler/foresight.h"

/* What the clairvoyant scheduler needs of a path beyond the view. */
typedef struct {
    const xl_addr *local, *remote;
    const xl_pacer *pacer;   /* NULL: not paced */
    uint64_t ssthresh_bytes; /* XL_NEVER: none yet */
} xl_foreseen_path;

typedef struct xl_foreseen {
    const xl_foresight *network;
    xl_foreseen_path path[XL_MAX_PATHS]; /* in the order of view->path */
} xl_foreseen;
