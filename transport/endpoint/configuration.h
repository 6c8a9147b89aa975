/* Configuration of an endpoint: the defaults, and its own copy of the application's settings. */
#pragma once

#include "endpoint/endpoint.h"

/* Copies a scheme, with the registered names, and fills in defaults. Without foresight, schedulers that need it are
 * refused. Returns 0 or XL_ERR_ARGUMENT; then nothing is copied. */
int xl_scheme_copy(const xl_scheme *, bool has_foresight, xl_scheme *out);
/* Copies the configuration to ep->config. The endpoint owns the strings, also on failure. Returns 0 or XL_ERR_*. */
int xl_endpoint_copy_config(xl_endpoint *, const xl_config *);
