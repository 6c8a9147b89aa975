/* Keeps one TLS session in a file, for programs that connect again later: see xl_credentials_keep_sessions(). The file
 * holds secrets, so its mode is 0600. It is written under the name `<name>.new` and then renamed. */
#ifndef XLINK_SESSION_FILE_H
#define XLINK_SESSION_FILE_H

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

typedef struct xl_session_file xl_session_file;

/* name NULL: the session is kept in memory only. A missing file, or the session of another server, counts as no
 * session. Returns NULL without memory. */
xl_session_file *xl_session_file_open(const char *name);
/* Call it after freeing the endpoints that use it. Accepts NULL. Returns false and writes a phrase to error if a
 * session could not be written: "cannot write the session to /x/session: Permission denied". */
bool xl_session_file_close(xl_session_file *, char *error, size_t error_cap);
xl_sessions xl_session_file_sessions(xl_session_file *);

XL_END_DECLS

#endif
