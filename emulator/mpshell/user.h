/* The user that COMMAND runs as, and what it may do. */
#ifndef RAILYARD_MPSHELL_USER_H
#define RAILYARD_MPSHELL_USER_H

#include <stdbool.h>
#include <sys/types.h>

#define MP_USER_TEXT_SIZE 256

typedef struct {
    bool given; /* COMMAND runs as this user and has no capability; else as mpshell itself */
    uid_t uid;
    gid_t gid;
    char name[MP_USER_TEXT_SIZE];
    char home[MP_USER_TEXT_SIZE];
} mp_user;

/* Finds the user: name if that is not NULL (a name or a number), else who called sudo (SUDO_UID), else nobody in
 * particular. False with a sentence in error: an unknown user, or no right to change users. */
bool mp_user_find(mp_user *user, const char *name, char *error);

/* In the child that becomes COMMAND: changes to the user, with its groups, HOME, USER and LOGNAME, no capability (not
 * in the bounding set either) and no_new_privs. False with errno set. */
bool mp_user_become(const mp_user *user);
/* In a child that shares namespaces with mpshell: no capability, and no_new_privs. False with errno set. */
bool mp_user_drop_capabilities(void);
/* In a child that stays root: gives up what concerns the machine and no namespace (kernel modules, raw I/O, the clock,
 * reboot, mandatory access control, the audit and kernel logs). What nested shells, ip, tc, iptables, tcpdump, ping and
 * changing users need stays. */
void mp_user_limit_root(void);
/* The calling thread alone: what it opens from now on it opens with the rights of that user and its groups. False
 * with errno set. */
bool mp_user_open_files_as(const mp_user *user);

#endif
