/* An xl_log that writes files: qlogs in a directory, TLS secrets in a key log file.
 *
 * Each connection has one qlog in JSON-SEQ format, `<original destination CID in hex>_client.sqlog` or
 * `…_server.sqlog`. The client chooses the CID, so an existing file or link is never overwritten: the next names are
 * `<CID>-2_server.sqlog`, `<CID>-3_server.sqlog` and so on. A qlog holds addresses and connection IDs, no secrets and
 * no stream data; its mode is 0644 less the umask. It needs no open descriptor: text is buffered and appended 12 KiB at
 * a time, the rest at the end of the connection. If the file has been replaced, the rest of the qlog is left out.
 *
 * The key log has NSS format. Lines are appended, so several endpoints may share a file. Whoever has it can decrypt
 * captured traffic, so its mode is 0600; an existing file gets this mode too. */
#ifndef XLINK_LOG_FILES_H
#define XLINK_LOG_FILES_H

#include <stddef.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

typedef struct xl_log_files xl_log_files;

typedef struct {
    const char *qlog_dir;    /* Created if missing; its parent must exist. NULL: no qlogs. */
    const char *keylog_file; /* NULL: no key log. */
    uint64_t qlog_files;     /* Maximum number of qlogs; later connections have none. 0: no limit. */
    bool replace;            /* Replace existing files. For simulations, whose CIDs repeat with the seed. */
} xl_log_options;

/* Returns NULL and writes a phrase to error on failure: "cannot write to /x/keys.log: Permission denied". */
xl_log_files *xl_log_files_open(const xl_log_options *, char *error, size_t error_cap);
/* The value for xl_config.log. It is valid until xl_log_files_close(). */
xl_log xl_log_files_log(xl_log_files *);
/* Number of connections without a qlog: above the limit, or the file could not be created. */
uint64_t xl_log_files_left_out(const xl_log_files *);
/* Call it after freeing the endpoints that use the log. Accepts NULL. */
void xl_log_files_close(xl_log_files *);

XL_END_DECLS

#endif
