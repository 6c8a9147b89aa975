/* Keeps one TLS session in a file, for programs that connect again later: xl_credentials_keep_sessions(). The file
 * holds secrets: it is written with mode 0600, beside its place, and then renamed. */
#ifndef XLINK_SESSION_FILE_H
#define XLINK_SESSION_FILE_H

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

typedef struct xl_session_file xl_session_file;

/* name NULL: sessions are kept in memory alone. A file that is not there, or of another server, is as none. NULL: out
 * of memory. */
xl_session_file *xl_session_file_open(const char *name);
/* After the endpoints that use it; NULL is fine. Returns false and writes a phrase to error if a session could not be
 * written: "cannot write the session to /x/session: Permission denied". */
bool xl_session_file_close(xl_session_file *, char *error, size_t error_cap);
xl_sessions xl_session_file_sessions(xl_session_file *);

XL_END_DECLS

#endif
