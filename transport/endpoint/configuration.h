/* What an endpoint is configured with: the defaults, and its own copy of what the application gave. */
#ifndef XL_ENDPOINT_CONFIGURATION_H
#define XL_ENDPOINT_CONFIGURATION_H

#include "endpoint/endpoint.h"

/* Fills in defaults; the strings become names[], to be freed also on failure. Without foresight, schedulers that need
 * it are refused. 0 or XL_ERR_*. */
int xl_scheme_copy(const xl_scheme *, bool has_foresight, xl_scheme *out, char *names[XL_SCHEME_NAMES]);
void xl_scheme_free_names(char *names[XL_SCHEME_NAMES]);
/* Into ep->config; its strings are the endpoint's, also on failure. 0 or XL_ERR_*. */
int xl_endpoint_copy_config(xl_endpoint *, const xl_config *);

#endif
