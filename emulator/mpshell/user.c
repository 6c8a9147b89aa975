#include "emulator/mpshell/user.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/mpshell/shell.h"

static const struct passwd *entry_of(const char *name) {
    char *end;
    const struct passwd *entry = getpwnam(name);
    if (entry || name[0] < '0' || name[0] > '9')
        return entry;
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    return errno == 0 && *end == '\0' && number < UINT32_MAX ? getpwuid((uid_t)number) : NULL;
}

static bool has_capability(unsigned number) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    memset(data, 0, sizeof data);
    return syscall(SYS_capget, &header, data) == 0 && (data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number)) != 0;
}

bool mp_user_find(mp_user *user, const char *name, char *error) {
    const char *caller = getenv("SUDO_UID");
    bool by_sudo = !name && geteuid() == 0 && caller && caller[0] != '\0';
    const char *wanted = by_sudo ? caller : name;
    user->given = false;
    if (!wanted)
        return true;
    const struct passwd *entry = entry_of(wanted);
    if (!entry) {
        return by_sudo ? mp_fail(error, "who called sudo (SUDO_UID %.40s) is no user of this machine; give --user NAME",
                                 wanted)
                       : mp_fail(error, "--user %.40s: there is no such user", wanted);
    }
    if (entry->pw_uid == 0)
        return geteuid() == 0 || mp_fail(error, "--user %.40s: only root can run COMMAND as root", wanted);
    if (entry->pw_uid != geteuid() && (!has_capability(CAP_SETUID) || !has_capability(CAP_SETGID)))
        return mp_fail(error, "--user %.40s: no permission to change users (CAP_SETUID, CAP_SETGID)", wanted);
    user->given = true;
    user->uid = entry->pw_uid;
    user->gid = entry->pw_gid;
    snprintf(user->name, sizeof user->name, "%s", entry->pw_name);
    snprintf(user->home, sizeof user->home, "%s", entry->pw_dir);
    return true;
}

/* Needs CAP_SETPCAP. Without it no program can gain the remaining capabilities, because no_new_privs is set. */
static void empty_bounding_set(void) {
    for (unsigned long number = 0; prctl(PR_CAPBSET_READ, number, 0ul, 0ul, 0ul) >= 0; number++)
        prctl(PR_CAPBSET_DROP, number, 0ul, 0ul, 0ul);
}

bool mp_user_drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    memset(none, 0, sizeof none);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0ul, 0ul, 0ul);
    empty_bounding_set();
    return prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul) == 0 && syscall(SYS_capset, &header, none) == 0;
}

bool mp_user_become(const mp_user *user) {
    empty_bounding_set(); /* while this is still permitted */
    if (user->uid != geteuid() &&
        (initgroups(user->name, user->gid) != 0 || setresgid(user->gid, user->gid, user->gid) != 0 ||
         setresuid(user->uid, user->uid, user->uid) != 0))
        return false;
    setenv("HOME", user->home, 1);
    setenv("USER", user->name, 1);
    setenv("LOGNAME", user->name, 1);
    return mp_user_drop_capabilities();
}

bool mp_user_open_files_as(const mp_user *user) {
    gid_t groups[NGROUPS_MAX];
    int count = NGROUPS_MAX;
    if (user->uid == geteuid())
        return true;
    if (getgrouplist(user->name, user->gid, groups, &count) < 0) {
        errno = E2BIG;
        return false;
    }
    /* setgroups() would change all threads. */
    if (syscall(SYS_setgroups, (size_t)count, groups) != 0)
        return false;
    setfsgid(user->gid);
    setfsuid(user->uid);
    return true;
}

void mp_user_limit_root(void) {
    static const unsigned long of_the_machine[] = {
        CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT,      CAP_SYS_TIME,   CAP_MAC_ADMIN,     CAP_MAC_OVERRIDE,
        CAP_SYSLOG,     CAP_SYS_PACCT, CAP_AUDIT_CONTROL, CAP_AUDIT_READ, CAP_BLOCK_SUSPEND, CAP_WAKE_ALARM,
    };
    for (size_t i = 0; i < sizeof of_the_machine / sizeof of_the_machine[0]; i++)
        prctl(PR_CAPBSET_DROP, of_the_machine[i], 0ul, 0ul, 0ul);
}
