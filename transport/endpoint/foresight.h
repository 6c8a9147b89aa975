/* Endpoints of a simulator that knows its network's future (scheduler/foresight.h). Not part of the public API. */
#pragma once

#include "xlink/xlink.h"

struct xl_foresight;

/* xl_endpoint_new() for such a simulator: also accepts schedulers that need foresight. The foresight must outlive the
 * endpoint. */
xl_endpoint *xl_endpoint_new_foreseeing(const xl_config *, const struct xl_foresight *, uint64_t now, int *error);
