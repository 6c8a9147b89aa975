#include "scheduler/scheduler.h"

bool xl_scheduler_is_reference(const char *name) {
    const xl_scheduler_ops *ops = xl_scheduler_find(name);
    return ops && ops->decide_foreseeing;
}

#define WORST_CLASS 4

/* The class of a path: only paths of the best class present are used, so that a suspect or standby path carries data
 * only when nothing else is left. */
static int path_class(const xl_scheduler_path *p) {
    return (p->is_suspect ? 2 : 0) + (p->is_standby ? 1 : 0);
}

static int best_class(const xl_scheduler_view *view) {
    int best = WORST_CLASS;
    for (size_t i = 0; i < view->count; i++)
        if (path_class(&view->path[i]) < best)
            best = path_class(&view->path[i]);
    return best;
}

static bool goes_before(const xl_scheduler_path *a, const xl_scheduler_path *b) {
    if (a->srtt_us != b->srtt_us)
        return a->srtt_us < b->srtt_us;
    return a->index < b->index;
}

size_t xl_scheduler_by_rtt(const xl_scheduler_view *view, size_t order[XL_MAX_PATHS]) {
    int best = WORST_CLASS;
    size_t n = 0;
    for (size_t i = 0; i < view->count; i++) {
        int class = path_class(&view->path[i]);
        if (class < best) {
            best = class;
            n = 0;
        }
        if (class != best || !view->path[i].has_window)
            continue;
        size_t at = n++;
        for (; at > 0 && goes_before(&view->path[i], &view->path[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}

bool xl_scheduler_decide_by_rtt(const xl_scheduler_view *view, xl_scheduler_decision *out) {
    out->count = xl_scheduler_by_rtt(view, out->order);
    out->waits_for = -1;
    out->why = NULL;
    return out->count > 0;
}

void xl_scheduler_minrtt_decide(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    (void)state;
    xl_scheduler_decide_by_rtt(view, out);
}

const xl_scheduler_path *xl_scheduler_faster_but_full(const xl_scheduler_view *view,
                                                      const xl_scheduler_decision *chosen) {
    int best = best_class(view);
    const xl_scheduler_path *faster = NULL;
    for (size_t i = 0; i < view->count && chosen->count > 0; i++) {
        const xl_scheduler_path *p = &view->path[i];
        /* A path that has nothing in flight, or does not answer in time, is not worth waiting for. */
        if (path_class(p) != best || p->pto_count > 0 || p->in_flight_bytes == 0)
            continue;
        if (goes_before(p, &view->path[chosen->order[0]]) && (!faster || goes_before(p, faster)))
            faster = p;
    }
    return faster;
}

void xl_scheduler_wait(xl_scheduler_decision *d, const xl_scheduler_path *for_path, const char *why) {
    d->count = 0;
    d->waits_for = for_path->index;
    d->why = why;
}
