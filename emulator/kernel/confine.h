/* The rights of the kernel's process on the host. A program that is root inside can mount the host's root for writing,
 * and use every right of that process. So the process has only these: it reads what its user may read, and changes only
 * files below one folder.
 *
 * Two mechanisms of the host, either of which may be missing in a container, protect the files (VK_BY_*):
 * - a copy of the host's mounts, read-only except the folder, and a network without devices; in a user namespace if the
 *   caller is not root;
 * - Landlock, which also prevents signals to other processes and access to their memory. It does not protect modes,
 *   owners and times of the user's files.
 * In addition, the process has no capabilities, and a process of root changes to the user that owns the folder. */
#pragma once

#include <stdbool.h>

enum { VK_BY_MOUNTS = 1, VK_BY_LANDLOCK = 2 };

/* A variable of vkernel's environment; "1": run without either mechanism if both are missing. */
#define VK_UNCONFINED "RAILYARD_KERNEL_UNCONFINED"

/* Confines this process, which has one thread, and the programs that it becomes; cannot be undone. Makes the folder its
 * current directory. Returns which mechanisms protect the files (VK_BY_*, 0: none), or -1 with errno set if the folder
 * cannot be entered or a right cannot be dropped. */
int vk_confine(const char *folder);
