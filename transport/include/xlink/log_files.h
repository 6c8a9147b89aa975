/* The xl_log of a driver that has a file system: qlogs in a directory, TLS secrets in a key log file.
 *
 * A qlog is one JSON-SEQ text a connection, `<original destination CID in hex>_client.sqlog` or `…_server.sqlog`; the
 * key log is in NSS format and appended to, so that several endpoints may share one. */
#ifndef XLINK_LOG_FILES_H
#define XLINK_LOG_FILES_H

#include <stddef.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

typedef struct xl_log_files xl_log_files;

/* Either may be NULL: no such log. The directory is made when it is missing (its parent is not). NULL with one phrase
 * in error, e.g. "cannot write to /x/keys.log: Permission denied". */
xl_log_files *xl_log_files_open(const char *qlog_dir, const char *keylog_file, char *error, size_t error_cap);
/* To be put into xl_config.log; valid until xl_log_files_close(). */
xl_log xl_log_files_log(xl_log_files *);
/* After the endpoints that use it; NULL is fine. */
void xl_log_files_close(xl_log_files *);

XL_END_DECLS

#endif
