/* The line with which xlink-get summarises a transfer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define GET_SUMMARY_BYTES 768

typedef struct {
    size_t complete, count; /* files */
    uint64_t bytes, us;     /* bytes: of complete bodies; us: time since the start */
    size_t paths;
    xl_addr local[XL_MAX_PATHS];
    uint64_t received[XL_MAX_PATHS]; /* UDP payload bytes of each path */
} get_summary;

/* Writes "2 of 3 files, 5.00 MB in 1.43 s, 28.0 Mbit/s, over 2 paths: 3.10 MB by 10.0.0.2, 2.15 MB by 10.0.1.2" */
void get_summary_text(const get_summary *, char text[GET_SUMMARY_BYTES]);
