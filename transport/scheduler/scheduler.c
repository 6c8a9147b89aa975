#include "scheduler/scheduler.h"

#include <string.h>

/* One line registers a scheduler. */
static const xl_scheduler_ops *const registry[] = {
    &xl_scheduler_minrtt,
    &xl_scheduler_xlink,
};

const xl_scheduler_ops *xl_scheduler_find(const char *name) {
    for (size_t i = 0; i < sizeof(registry) / sizeof(registry[0]); i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}

/* The class of a path: only paths of the best class present are used, so that a suspect or standby path carries data
 * only when nothing else is left. */
static int path_class(const xl_scheduler_path *p) {
    return (p->is_suspect ? 2 : 0) + (p->is_standby ? 1 : 0);
}

static bool goes_before(const xl_scheduler_path *a, const xl_scheduler_path *b) {
    if (a->srtt_us != b->srtt_us)
        return a->srtt_us < b->srtt_us;
    return a->index < b->index;
}

size_t xl_scheduler_by_rtt(const xl_scheduler_view *view, size_t order[XL_MAX_PATHS]) {
    int best = 4;
    for (size_t i = 0; i < view->count; i++)
        if (path_class(&view->path[i]) < best)
            best = path_class(&view->path[i]);
    size_t n = 0;
    for (size_t i = 0; i < view->count; i++) {
        if (path_class(&view->path[i]) != best || !view->path[i].has_window)
            continue;
        size_t at = n++;
        for (; at > 0 && goes_before(&view->path[i], &view->path[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}
