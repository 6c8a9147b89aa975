/* Limit, reserve and closing of file descriptors. */
#pragma once

/* Raises the process's soft limit to its hard limit. */
void descriptors_raise_limit(void);

/* Returns an unused descriptor, which can be closed when the process runs out of descriptors; -1 on failure. */
int descriptors_reserve(void);
/* Closes *fd unless it is -1, and sets it to -1. */
void descriptor_close(int *fd);
