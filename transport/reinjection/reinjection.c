#include "reinjection/reinjection.h"

static xl_reinjection_scope none_scope(const xl_reinjection_view *view) {
    (void)view;
    return XL_REINJECT_NOTHING;
}

const xl_reinjection_ops xl_reinjection_none = {.name = "none", .scope = none_scope};

bool xl_reinjection_pays(uint64_t original_us, uint64_t copy_us, uint64_t min_gain_us) {
    return copy_us != XL_NEVER && (original_us == XL_NEVER || copy_us + copy_us / 4 + min_gain_us < original_us);
}
