/* COMMAND's user and capabilities. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define MP_USER_TEXT_SIZE 256

typedef struct {
    bool given; /* COMMAND runs as this user without capabilities; false: as mpshell's user */
    uid_t uid;
    gid_t gid;
    char name[MP_USER_TEXT_SIZE];
    char home[MP_USER_TEXT_SIZE];
} mp_user;

/* Finds the user: `name` (a name or a number), else the caller of sudo (SUDO_UID), else none (`given` is false). False
 * with a sentence in error: an unknown user, or no permission to change users. */
bool mp_user_find(mp_user *user, const char *name, char *error);

/* In the child that becomes COMMAND: changes to the user, with its groups, HOME, USER and LOGNAME, drops all
 * capabilities, also from the bounding set, and sets no_new_privs. False with errno set. */
bool mp_user_become(const mp_user *user);
/* In a child that shares mpshell's namespaces: drops all capabilities and sets no_new_privs. False with errno set. */
bool mp_user_drop_capabilities(void);
/* In a child that stays root: drops capabilities over the machine (kernel modules, raw I/O, the clock, reboot,
 * mandatory access control, the audit and kernel logs). Keeps those that nested shells, ip, tc, iptables, tcpdump, ping
 * and changing users need. */
void mp_user_limit_root(void);
/* From now on the calling thread opens files with the rights of that user and its groups. False with errno set. */
bool mp_user_open_files_as(const mp_user *user);
