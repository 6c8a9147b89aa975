/* The xl_log of a driver that has a file system: qlogs in a directory, TLS secrets in a key log file.
 *
 * A qlog is one JSON-SEQ text a connection, `<original destination CID in hex>_client.sqlog` or `…_server.sqlog`. Its
 * file is always a new one: the client chooses the CID, and must not choose a file to be overwritten. Where there is a
 * file of that name, or a link, the new one is `<CID>-2_server.sqlog`, and so on. Qlogs can be read by all users of the
 * machine (mode 0644 less the umask): they hold addresses and connection IDs, no secrets and no stream data.
 *
 * The key log is in NSS format and appended to, so that several endpoints may share one. It decrypts what was captured:
 * its owner alone may read it (mode 0600), also where it was there before. */
#ifndef XLINK_LOG_FILES_H
#define XLINK_LOG_FILES_H

#include <stddef.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

typedef struct xl_log_files xl_log_files;

typedef struct {
    const char *qlog_dir;    /* made when it is missing (its parent is not); NULL: no qlogs */
    const char *keylog_file; /* NULL: no key log */
    uint64_t qlog_files;     /* so many are made at most, connections after them have none; 0 = no limit */
    bool replace;            /* both replace files of their names: of a simulation, whose CIDs follow from its seed */
} xl_log_options;

/* NULL with one phrase in error, e.g. "cannot write to /x/keys.log: Permission denied". */
xl_log_files *xl_log_files_open(const xl_log_options *, char *error, size_t error_cap);
/* To be put into xl_config.log; valid until xl_log_files_close(). */
xl_log xl_log_files_log(xl_log_files *);
/* Connections that have no qlog: by the limit, or because the file could not be made. */
uint64_t xl_log_files_left_out(const xl_log_files *);
/* After the endpoints that use it; NULL is fine. */
void xl_log_files_close(xl_log_files *);

XL_END_DECLS

#endif
