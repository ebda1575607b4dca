/* The system calls of Linux, as the kernel's view records them.

   Everything known of a system call comes from this list: its number on this machine, its entries in the map, and what it does
   to descriptors. To support a new system call, add an entry. A call that is not in the list is recorded by its number.

   The columns: the name; the kind, or BY_DESCRIPTOR if the descriptor in the first argument decides; what the result means; and
   what the call does to descriptors. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"

enum { BY_DESCRIPTOR = KIND_COUNT, KINDS_OF_DESCRIPTORS = 4 };

enum result { PLAIN, BYTES };

enum effect {
    NONE,
    USES,   /* the first argument is a descriptor */
    OPENS,  /* the result is a new descriptor */
    CLOSES, /* closes the first argument */
    TAKES,  /* the second argument is a descriptor that is replaced */
    RANGE,  /* closes descriptors from the first argument to the second */
};

#define SYSTEM_CALLS(X) \
    CALLS_OF_FILES(X) CALLS_OF_DESCRIPTORS(X) CALLS_OF_SOCKETS(X) CALLS_THAT_WAIT(X) CALLS_OF_PROCESSES(X) \
    CALLS_OF_MEMORY(X) CALLS_OF_THE_SYSTEM(X)

#define CALLS_OF_FILES(X) \
    X(open,           KIND_file, PLAIN, OPENS)  X(openat,         KIND_file, PLAIN, OPENS)  X(openat2,      KIND_file, PLAIN, OPENS) \
    X(creat,          KIND_file, PLAIN, OPENS)  X(open_by_handle_at, KIND_file, PLAIN, OPENS) X(memfd_create, KIND_file, PLAIN, OPENS) \
    X(memfd_secret,   KIND_file, PLAIN, OPENS)  X(open_tree,      KIND_file, PLAIN, OPENS)  X(open_tree_attr, KIND_file, PLAIN, OPENS) \
    X(name_to_handle_at, KIND_file, PLAIN, NONE) \
    X(stat,           KIND_file, PLAIN, NONE)   X(lstat,          KIND_file, PLAIN, NONE)   X(newfstatat,   KIND_file, PLAIN, NONE) \
    X(fstatat64,      KIND_file, PLAIN, NONE)   X(statx,          KIND_file, PLAIN, NONE)   X(access,       KIND_file, PLAIN, NONE) \
    X(faccessat,      KIND_file, PLAIN, NONE)   X(faccessat2,     KIND_file, PLAIN, NONE)   X(readlink,     KIND_file, PLAIN, NONE) \
    X(readlinkat,     KIND_file, PLAIN, NONE)   X(getcwd,         KIND_file, PLAIN, NONE)   X(chdir,        KIND_file, PLAIN, NONE) \
    X(chroot,         KIND_file, PLAIN, NONE)   X(mkdir,          KIND_file, PLAIN, NONE)   X(mkdirat,      KIND_file, PLAIN, NONE) \
    X(rmdir,          KIND_file, PLAIN, NONE)   X(rename,         KIND_file, PLAIN, NONE)   X(renameat,     KIND_file, PLAIN, NONE) \
    X(renameat2,      KIND_file, PLAIN, NONE)   X(link,           KIND_file, PLAIN, NONE)   X(linkat,       KIND_file, PLAIN, NONE) \
    X(symlink,        KIND_file, PLAIN, NONE)   X(symlinkat,      KIND_file, PLAIN, NONE)   X(unlink,       KIND_file, PLAIN, NONE) \
    X(unlinkat,       KIND_file, PLAIN, NONE)   X(mknod,          KIND_file, PLAIN, NONE)   X(mknodat,      KIND_file, PLAIN, NONE) \
    X(chmod,          KIND_file, PLAIN, NONE)   X(fchmodat,       KIND_file, PLAIN, NONE)   X(fchmodat2,    KIND_file, PLAIN, NONE) \
    X(chown,          KIND_file, PLAIN, NONE)   X(lchown,         KIND_file, PLAIN, NONE)   X(fchownat,     KIND_file, PLAIN, NONE) \
    X(utime,          KIND_file, PLAIN, NONE)   X(utimes,         KIND_file, PLAIN, NONE)   X(futimesat,    KIND_file, PLAIN, NONE) \
    X(utimensat,      KIND_file, PLAIN, NONE)   X(truncate,       KIND_file, PLAIN, NONE)   X(statfs,       KIND_file, PLAIN, NONE) \
    X(setxattr,       KIND_file, PLAIN, NONE)   X(lsetxattr,      KIND_file, PLAIN, NONE)   X(getxattr,     KIND_file, PLAIN, NONE) \
    X(lgetxattr,      KIND_file, PLAIN, NONE)   X(listxattr,      KIND_file, PLAIN, NONE)   X(llistxattr,   KIND_file, PLAIN, NONE) \
    X(removexattr,    KIND_file, PLAIN, NONE)   X(lremovexattr,   KIND_file, PLAIN, NONE)   X(setxattrat,   KIND_file, PLAIN, NONE) \
    X(getxattrat,     KIND_file, PLAIN, NONE)   X(listxattrat,    KIND_file, PLAIN, NONE)   X(removexattrat, KIND_file, PLAIN, NONE) \
    X(sync,           KIND_file, PLAIN, NONE)   X(mount,          KIND_file, PLAIN, NONE)   X(umount2,      KIND_file, PLAIN, NONE) \
    X(move_mount,     KIND_file, PLAIN, NONE)   X(mount_setattr,  KIND_file, PLAIN, NONE)   X(fsopen,       KIND_file, PLAIN, OPENS) \
    X(fsconfig,       KIND_file, PLAIN, USES)   X(fsmount,        KIND_file, PLAIN, OPENS)  X(fspick,       KIND_file, PLAIN, OPENS) \
    X(statmount,      KIND_file, PLAIN, NONE)   X(listmount,      KIND_file, PLAIN, NONE)   X(pivot_root,   KIND_file, PLAIN, NONE) \
    X(swapon,         KIND_file, PLAIN, NONE)   X(swapoff,        KIND_file, PLAIN, NONE)   X(acct,         KIND_file, PLAIN, NONE) \
    X(quotactl,       KIND_file, PLAIN, NONE)   X(quotactl_fd,    KIND_file, PLAIN, USES)   X(inotify_init, KIND_file, PLAIN, OPENS) \
    X(inotify_init1,  KIND_file, PLAIN, OPENS)  X(inotify_add_watch, KIND_file, PLAIN, USES) X(inotify_rm_watch, KIND_file, PLAIN, USES) \
    X(fanotify_init,  KIND_file, PLAIN, OPENS)  X(fanotify_mark,  KIND_file, PLAIN, USES)   X(io_setup,     KIND_file, PLAIN, NONE) \
    X(io_destroy,     KIND_file, PLAIN, NONE)   X(io_submit,      KIND_file, PLAIN, NONE)   X(io_cancel,    KIND_file, PLAIN, NONE) \
    X(io_getevents,   KIND_file, PLAIN, NONE)   X(io_pgetevents,  KIND_file, PLAIN, NONE)   X(io_uring_setup, KIND_file, PLAIN, OPENS) \
    X(io_uring_enter, KIND_file, PLAIN, NONE)   X(io_uring_register, KIND_file, PLAIN, NONE) X(lookup_dcookie, KIND_file, PLAIN, NONE)

#define CALLS_OF_DESCRIPTORS(X) \
    X(read,           BY_DESCRIPTOR, BYTES, USES)   X(write,          BY_DESCRIPTOR, BYTES, USES)   X(pread64,    BY_DESCRIPTOR, BYTES, USES) \
    X(pwrite64,       BY_DESCRIPTOR, BYTES, USES)   X(readv,          BY_DESCRIPTOR, BYTES, USES)   X(writev,     BY_DESCRIPTOR, BYTES, USES) \
    X(preadv,         BY_DESCRIPTOR, BYTES, USES)   X(pwritev,        BY_DESCRIPTOR, BYTES, USES)   X(preadv2,    BY_DESCRIPTOR, BYTES, USES) \
    X(pwritev2,       BY_DESCRIPTOR, BYTES, USES)   X(sendfile,       BY_DESCRIPTOR, BYTES, USES)   X(splice,     BY_DESCRIPTOR, BYTES, USES) \
    X(tee,            BY_DESCRIPTOR, BYTES, USES)   X(vmsplice,       BY_DESCRIPTOR, BYTES, USES)   X(copy_file_range, BY_DESCRIPTOR, BYTES, USES) \
    X(getdents,       BY_DESCRIPTOR, BYTES, USES)   X(getdents64,     BY_DESCRIPTOR, BYTES, USES)   X(lseek,      BY_DESCRIPTOR, PLAIN, USES) \
    X(fstat,          BY_DESCRIPTOR, PLAIN, USES)   X(fstatfs,        BY_DESCRIPTOR, PLAIN, USES)   X(fsync,      BY_DESCRIPTOR, PLAIN, USES) \
    X(fdatasync,      BY_DESCRIPTOR, PLAIN, USES)   X(sync_file_range, BY_DESCRIPTOR, PLAIN, USES)  X(syncfs,     BY_DESCRIPTOR, PLAIN, USES) \
    X(ftruncate,      BY_DESCRIPTOR, PLAIN, USES)   X(fallocate,      BY_DESCRIPTOR, PLAIN, USES)   X(fadvise64,  BY_DESCRIPTOR, PLAIN, USES) \
    X(readahead,      BY_DESCRIPTOR, PLAIN, USES)   X(flock,          BY_DESCRIPTOR, PLAIN, USES)   X(fcntl,      BY_DESCRIPTOR, PLAIN, USES) \
    X(ioctl,          BY_DESCRIPTOR, PLAIN, USES)   X(fchdir,         BY_DESCRIPTOR, PLAIN, USES)   X(fchmod,     BY_DESCRIPTOR, PLAIN, USES) \
    X(fchown,         BY_DESCRIPTOR, PLAIN, USES)   X(fsetxattr,      BY_DESCRIPTOR, PLAIN, USES)   X(fgetxattr,  BY_DESCRIPTOR, PLAIN, USES) \
    X(flistxattr,     BY_DESCRIPTOR, PLAIN, USES)   X(fremovexattr,   BY_DESCRIPTOR, PLAIN, USES)   X(cachestat,  BY_DESCRIPTOR, PLAIN, USES) \
    X(file_getattr,   BY_DESCRIPTOR, PLAIN, USES)   X(file_setattr,   BY_DESCRIPTOR, PLAIN, USES)   X(close,      BY_DESCRIPTOR, PLAIN, CLOSES) \
    X(close_range,    KIND_file,     PLAIN, RANGE)  X(dup,            BY_DESCRIPTOR, PLAIN, OPENS)  X(dup2,       BY_DESCRIPTOR, PLAIN, TAKES) \
    X(dup3,           BY_DESCRIPTOR, PLAIN, TAKES)  X(pipe,           KIND_process,  PLAIN, NONE)   X(pipe2,      KIND_process, PLAIN, NONE) \
    X(eventfd,        KIND_process,  PLAIN, OPENS)  X(eventfd2,       KIND_process,  PLAIN, OPENS)  X(signalfd,   KIND_process, PLAIN, OPENS) \
    X(signalfd4,      KIND_process,  PLAIN, OPENS)  X(timerfd_create, KIND_sleep,    PLAIN, OPENS)  X(timerfd_settime, KIND_sleep, PLAIN, USES) \
    X(timerfd_gettime, KIND_sleep,   PLAIN, USES)   X(userfaultfd,    KIND_process,  PLAIN, OPENS)  X(vhangup,    KIND_screen,  PLAIN, NONE)

#define CALLS_OF_SOCKETS(X) \
    X(socket,         KIND_net, PLAIN, OPENS)   X(socketpair,     KIND_net, PLAIN, NONE)    X(bind,         KIND_net, PLAIN, USES) \
    X(listen,         KIND_net, PLAIN, USES)    X(accept,         KIND_idle, PLAIN, OPENS)  X(accept4,      KIND_idle, PLAIN, OPENS) \
    X(connect,        KIND_net, PLAIN, USES)    X(shutdown,       KIND_net, PLAIN, USES)    X(sendto,       KIND_net, BYTES, USES) \
    X(sendmsg,        KIND_net, BYTES, USES)    X(sendmmsg,       KIND_net, PLAIN, USES)    X(recvfrom,     KIND_net, BYTES, USES) \
    X(recvmsg,        KIND_net, BYTES, USES)    X(recvmmsg,       KIND_net, PLAIN, USES)    X(getsockname,  KIND_net, PLAIN, USES) \
    X(getpeername,    KIND_net, PLAIN, USES)    X(getsockopt,     KIND_net, PLAIN, USES)    X(setsockopt,   KIND_net, PLAIN, USES) \
    X(sethostname,    KIND_net, PLAIN, NONE)    X(setdomainname,  KIND_net, PLAIN, NONE)

#define CALLS_THAT_WAIT(X) \
    X(poll,           KIND_net, PLAIN, NONE)    X(ppoll,          KIND_net, PLAIN, NONE)    X(select,       KIND_net, PLAIN, NONE) \
    X(pselect6,       KIND_net, PLAIN, NONE)    X(epoll_create,   KIND_net, PLAIN, OPENS)   X(epoll_create1, KIND_net, PLAIN, OPENS) \
    X(epoll_ctl,      KIND_net, PLAIN, USES)    X(epoll_wait,     KIND_net, PLAIN, USES)    X(epoll_pwait,  KIND_net, PLAIN, USES) \
    X(epoll_pwait2,   KIND_net, PLAIN, USES)    X(nanosleep,      KIND_sleep, PLAIN, NONE)  X(clock_nanosleep, KIND_sleep, PLAIN, NONE) \
    X(pause,          KIND_sleep, PLAIN, NONE)  X(sched_yield,    KIND_sleep, PLAIN, NONE)  X(futex,        KIND_sync, PLAIN, NONE) \
    X(futex_wait,     KIND_sync, PLAIN, NONE)   X(futex_waitv,    KIND_sync, PLAIN, NONE)   X(futex_wake,   KIND_sync, PLAIN, NONE) \
    X(futex_requeue,  KIND_sync, PLAIN, NONE)   X(semget,         KIND_sync, PLAIN, NONE)   X(semop,        KIND_sync, PLAIN, NONE) \
    X(semtimedop,     KIND_sync, PLAIN, NONE)   X(semctl,         KIND_sync, PLAIN, NONE)   X(membarrier,   KIND_sync, PLAIN, NONE) \
    X(set_robust_list, KIND_sync, PLAIN, NONE)  X(get_robust_list, KIND_sync, PLAIN, NONE)  X(msgget,       KIND_process, PLAIN, NONE) \
    X(msgsnd,         KIND_process, PLAIN, NONE) X(msgrcv,        KIND_process, BYTES, NONE) X(msgctl,      KIND_process, PLAIN, NONE) \
    X(mq_open,        KIND_process, PLAIN, OPENS) X(mq_unlink,    KIND_process, PLAIN, NONE) X(mq_timedsend, KIND_process, PLAIN, USES) \
    X(mq_timedreceive, KIND_process, BYTES, USES) X(mq_notify,    KIND_process, PLAIN, USES) X(mq_getsetattr, KIND_process, PLAIN, USES) \
    X(restart_syscall, KIND_sleep, PLAIN, NONE)

#define CALLS_OF_PROCESSES(X) \
    X(fork,           KIND_process, PLAIN, NONE) X(vfork,         KIND_process, PLAIN, NONE) X(clone,       KIND_process, PLAIN, NONE) \
    X(clone3,         KIND_process, PLAIN, NONE) X(execve,        KIND_process, PLAIN, NONE) X(execveat,    KIND_process, PLAIN, NONE) \
    X(exit,           KIND_process, PLAIN, NONE) X(exit_group,    KIND_process, PLAIN, NONE) X(wait4,       KIND_process, PLAIN, NONE) \
    X(waitid,         KIND_process, PLAIN, NONE) X(kill,          KIND_process, PLAIN, NONE) X(tkill,       KIND_process, PLAIN, NONE) \
    X(tgkill,         KIND_process, PLAIN, NONE) X(pidfd_open,    KIND_process, PLAIN, OPENS) X(pidfd_getfd, KIND_process, PLAIN, OPENS) \
    X(pidfd_send_signal, KIND_process, PLAIN, USES) X(ptrace,     KIND_process, PLAIN, NONE) X(process_vm_readv, KIND_system, BYTES, NONE) \
    X(process_vm_writev, KIND_system, BYTES, NONE) X(process_madvise, KIND_system, PLAIN, NONE) X(process_mrelease, KIND_system, PLAIN, NONE) \
    X(kcmp,           KIND_system, PLAIN, NONE) X(getpid,        KIND_system, PLAIN, NONE) X(getppid,     KIND_system, PLAIN, NONE) \
    X(gettid,         KIND_system, PLAIN, NONE) X(getpgid,       KIND_system, PLAIN, NONE) X(getpgrp,     KIND_system, PLAIN, NONE) \
    X(getsid,         KIND_system, PLAIN, NONE) X(setpgid,       KIND_system, PLAIN, NONE) X(setsid,      KIND_system, PLAIN, NONE) \
    X(getuid,         KIND_system, PLAIN, NONE) X(geteuid,       KIND_system, PLAIN, NONE) X(getgid,      KIND_system, PLAIN, NONE) \
    X(getegid,        KIND_system, PLAIN, NONE) X(setuid,        KIND_system, PLAIN, NONE) X(setgid,      KIND_system, PLAIN, NONE) \
    X(setreuid,       KIND_system, PLAIN, NONE) X(setregid,      KIND_system, PLAIN, NONE) X(setresuid,   KIND_system, PLAIN, NONE) \
    X(setresgid,      KIND_system, PLAIN, NONE) X(getresuid,     KIND_system, PLAIN, NONE) X(getresgid,   KIND_system, PLAIN, NONE) \
    X(setfsuid,       KIND_system, PLAIN, NONE) X(setfsgid,      KIND_system, PLAIN, NONE) X(getgroups,   KIND_system, PLAIN, NONE) \
    X(setgroups,      KIND_system, PLAIN, NONE) X(capget,        KIND_system, PLAIN, NONE) X(capset,      KIND_system, PLAIN, NONE) \
    X(prctl,          KIND_system, PLAIN, NONE) X(arch_prctl,    KIND_system, PLAIN, NONE) X(personality, KIND_system, PLAIN, NONE) \
    X(unshare,        KIND_system, PLAIN, NONE) X(setns,         KIND_system, PLAIN, USES) X(umask,       KIND_system, PLAIN, NONE) \
    X(getrlimit,      KIND_system, PLAIN, NONE) X(setrlimit,     KIND_system, PLAIN, NONE) X(prlimit64,   KIND_system, PLAIN, NONE) \
    X(getrusage,      KIND_system, PLAIN, NONE) X(times,         KIND_system, PLAIN, NONE) X(getpriority, KIND_system, PLAIN, NONE) \
    X(setpriority,    KIND_system, PLAIN, NONE) X(ioprio_get,    KIND_system, PLAIN, NONE) X(ioprio_set,  KIND_system, PLAIN, NONE) \
    X(sched_setparam, KIND_system, PLAIN, NONE) X(sched_getparam, KIND_system, PLAIN, NONE) X(sched_setscheduler, KIND_system, PLAIN, NONE) \
    X(sched_getscheduler, KIND_system, PLAIN, NONE) X(sched_get_priority_max, KIND_system, PLAIN, NONE) \
    X(sched_get_priority_min, KIND_system, PLAIN, NONE) X(sched_rr_get_interval, KIND_system, PLAIN, NONE) \
    X(sched_setaffinity, KIND_system, PLAIN, NONE) X(sched_getaffinity, KIND_system, PLAIN, NONE) X(sched_setattr, KIND_system, PLAIN, NONE) \
    X(sched_getattr,  KIND_system, PLAIN, NONE) X(getcpu,        KIND_system, PLAIN, NONE) X(set_tid_address, KIND_system, PLAIN, NONE) \
    X(set_thread_area, KIND_system, PLAIN, NONE) X(get_thread_area, KIND_system, PLAIN, NONE) X(modify_ldt, KIND_system, PLAIN, NONE) \
    X(rseq,           KIND_system, PLAIN, NONE) X(rt_sigaction,  KIND_system, PLAIN, NONE) X(rt_sigprocmask, KIND_system, PLAIN, NONE) \
    X(rt_sigreturn,   KIND_system, PLAIN, NONE) X(rt_sigpending, KIND_system, PLAIN, NONE) X(rt_sigtimedwait, KIND_system, PLAIN, NONE) \
    X(rt_sigqueueinfo, KIND_system, PLAIN, NONE) X(rt_tgsigqueueinfo, KIND_system, PLAIN, NONE) X(rt_sigsuspend, KIND_system, PLAIN, NONE) \
    X(sigaltstack,    KIND_system, PLAIN, NONE) X(alarm,         KIND_system, PLAIN, NONE) X(getitimer,   KIND_system, PLAIN, NONE) \
    X(setitimer,      KIND_system, PLAIN, NONE) X(timer_create,  KIND_system, PLAIN, NONE) X(timer_settime, KIND_system, PLAIN, NONE) \
    X(timer_gettime,  KIND_system, PLAIN, NONE) X(timer_getoverrun, KIND_system, PLAIN, NONE) X(timer_delete, KIND_system, PLAIN, NONE) \
    X(seccomp,        KIND_system, PLAIN, NONE) X(landlock_create_ruleset, KIND_system, PLAIN, OPENS) \
    X(landlock_add_rule, KIND_system, PLAIN, USES) X(landlock_restrict_self, KIND_system, PLAIN, USES)

#define CALLS_OF_MEMORY(X) \
    X(brk,            KIND_system, PLAIN, NONE) X(mmap,          KIND_system, PLAIN, NONE) X(munmap,      KIND_system, PLAIN, NONE) \
    X(mremap,         KIND_system, PLAIN, NONE) X(mprotect,      KIND_system, PLAIN, NONE) X(madvise,     KIND_system, PLAIN, NONE) \
    X(msync,          KIND_file,    PLAIN, NONE) X(mincore,       KIND_system, PLAIN, NONE) X(mlock,       KIND_system, PLAIN, NONE) \
    X(mlock2,         KIND_system, PLAIN, NONE) X(munlock,       KIND_system, PLAIN, NONE) X(mlockall,    KIND_system, PLAIN, NONE) \
    X(munlockall,     KIND_system, PLAIN, NONE) X(mbind,         KIND_system, PLAIN, NONE) X(get_mempolicy, KIND_system, PLAIN, NONE) \
    X(set_mempolicy,  KIND_system, PLAIN, NONE) X(set_mempolicy_home_node, KIND_system, PLAIN, NONE) X(migrate_pages, KIND_system, PLAIN, NONE) \
    X(move_pages,     KIND_system, PLAIN, NONE) X(remap_file_pages, KIND_system, PLAIN, NONE) X(mseal,     KIND_system, PLAIN, NONE) \
    X(pkey_mprotect,  KIND_system, PLAIN, NONE) X(pkey_alloc,    KIND_system, PLAIN, NONE) X(pkey_free,   KIND_system, PLAIN, NONE) \
    X(map_shadow_stack, KIND_system, PLAIN, NONE) X(shmget,      KIND_system, PLAIN, NONE) X(shmat,       KIND_system, PLAIN, NONE) \
    X(shmdt,          KIND_system, PLAIN, NONE) X(shmctl,        KIND_system, PLAIN, NONE)

#define CALLS_OF_THE_SYSTEM(X) \
    X(time,           KIND_system, PLAIN, NONE) X(gettimeofday,  KIND_system, PLAIN, NONE) X(settimeofday, KIND_system, PLAIN, NONE) \
    X(clock_gettime,  KIND_system, PLAIN, NONE) X(clock_settime, KIND_system, PLAIN, NONE) X(clock_getres, KIND_system, PLAIN, NONE) \
    X(clock_adjtime,  KIND_system, PLAIN, NONE) X(adjtimex,      KIND_system, PLAIN, NONE) X(getrandom,   KIND_system, BYTES, NONE) \
    X(uname,          KIND_system, PLAIN, NONE) X(sysinfo,       KIND_system, PLAIN, NONE) X(syslog,      KIND_system, PLAIN, NONE) \
    X(sysfs,          KIND_system, PLAIN, NONE) X(ustat,         KIND_system, PLAIN, NONE) X(reboot,      KIND_system, PLAIN, NONE) \
    X(kexec_load,     KIND_system, PLAIN, NONE) X(kexec_file_load, KIND_system, PLAIN, NONE) X(init_module, KIND_system, PLAIN, NONE) \
    X(finit_module,   KIND_system, PLAIN, NONE) X(delete_module, KIND_system, PLAIN, NONE) X(iopl,        KIND_system, PLAIN, NONE) \
    X(ioperm,         KIND_system, PLAIN, NONE) X(bpf,           KIND_system, PLAIN, NONE) X(perf_event_open, KIND_system, PLAIN, OPENS) \
    X(add_key,        KIND_system, PLAIN, NONE) X(request_key,   KIND_system, PLAIN, NONE) X(keyctl,      KIND_system, PLAIN, NONE) \
    X(lsm_get_self_attr, KIND_system, PLAIN, NONE) X(lsm_set_self_attr, KIND_system, PLAIN, NONE) X(lsm_list_modules, KIND_system, PLAIN, NONE)

struct system_call {
    const char *name;
    unsigned kind; /* enum kind, or BY_DESCRIPTOR */
    enum result result;
    enum effect effect;
    uint32_t intrinsic; /* its first number in the map; if the kind is the descriptor's, those after it are of the other kinds */
};

/* The kinds of descriptors, in the order of the numbers in the map. */
extern const enum kind kinds_of_descriptors[KINDS_OF_DESCRIPTORS];

/* Look up what the kernel of this machine calls them. */
void system_calls_prepare(void);

/* The call that the kernel has this number for; one without a name if it is not in the list. */
const struct system_call *system_call_of(int64_t number);

/* Its number in the map; `kind` is that of its descriptor. */
uint32_t system_call_intrinsic(const struct system_call *call, enum kind kind);

/* The calls in the order of their numbers in the map, and how many there are. */
extern const unsigned system_calls_listed;
const struct system_call *system_call_listed(unsigned place);
