/* Appending mode (paper Fig. 4a): duplicates queue behind all unsent data. */
#include "reinjection/reinjection.h"

static xl_reinjection_scope appending_scope(const xl_reinjection_view *view) {
    return view->connection_has_unsent ? XL_REINJECT_NOTHING : XL_REINJECT_STREAM;
}

const xl_reinjection_ops xl_reinjection_appending = {.name = "appending", .scope = appending_scope};
