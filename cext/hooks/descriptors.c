#include "hooks/descriptors.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/detail_levels.h"
#include "core/own_thread.h"
#include "core/pseudo_terminal.h"
#include "kinds.h"
#include "core/recorder.h"

struct descriptor descriptors[DESCRIPTORS_KNOWN];
int descriptors_end;
int watched_end;
bool passed_over[DESCRIPTORS_KNOWN];
bool networks_known;
int listener = NO_LISTENER;
uint8_t service;

static uint32_t intern_address(const struct sockaddr_storage *address, socklen_t bytes)
{
    char text[sizeof(struct sockaddr_un) + 16], host[INET6_ADDRSTRLEN];
    int length = 0;
    if (address->ss_family == AF_INET && ((const struct sockaddr_in *)(const void *)address)->sin_port) {
        const struct sockaddr_in *four = (const void *)address;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        length = snprintf(text, sizeof text, "%s:%u", host, ntohs(four->sin_port));
    } else if (address->ss_family == AF_INET6 && ((const struct sockaddr_in6 *)(const void *)address)->sin6_port) {
        const struct sockaddr_in6 *six = (const void *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        length = snprintf(text, sizeof text, "[%s]:%u", host, ntohs(six->sin6_port));
    } else if (address->ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path)) {
        const struct sockaddr_un *local = (const void *)address;
        bool abstract = local->sun_path[0] == 0;
        size_t room = bytes - offsetof(struct sockaddr_un, sun_path) - abstract;
        length = snprintf(text, sizeof text, "%s%.*s", abstract ? "@" : "", (int)strnlen(local->sun_path + abstract, room),
                          local->sun_path + abstract);
    }
    return length > 0 ? path_intern(KIND_net, text, (size_t)length) : 0;
}

/* --- what threads do at once */

static void reach(int number)
{
    int end = __atomic_load_n(&descriptors_end, __ATOMIC_RELAXED);
    while (number >= end && !__atomic_compare_exchange_n(&descriptors_end, &end, number + 1, false, __ATOMIC_RELAXED,
                                                         __ATOMIC_RELAXED))
        ;
}

/* Unless another thread has changed it meanwhile, and perhaps knows more. */
static void put_first(struct descriptor *place, const struct descriptor *before, const struct descriptor *known)
{
    descriptor_word word = *(const descriptor_word *)before;
    if (!before->known)
        __atomic_compare_exchange_n((descriptor_word *)place, &word, *(const descriptor_word *)known, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* --- what the kernel says */

uint32_t intern_literal(const char *text)
{
    return detail_intern(text, strlen(text));
}

/* A process may have very many descriptors. Their numbers are mostly small, with small gaps. */
enum { NUMBERS_AT_MOST = 1024, GAP = 256, ADDRESSES_AT_MOST = 64 };

/* Of this process's listeners, each once, as the kernel said in that period; 0 beyond the last. A period ends with a pause. */
static uint64_t addresses[ADDRESSES_AT_MOST];
static unsigned period = 1, asked_in;

/* What a listener and the sockets that it accepts have in common, and a client's has not: the port, or in Unix's family the name; 0 if
   there is none. */
static uint64_t key_of(const struct sockaddr_storage *address, socklen_t bytes)
{
    const char *name = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    uint64_t family = (uint64_t)address->ss_family << 16;
    if (address->ss_family == AF_INET)
        return family | ((const struct sockaddr_in *)(const void *)address)->sin_port;
    if (address->ss_family == AF_INET6)
        return family | ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
    bool has_name = address->ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path);
    return has_name ? hash_bytes(name, bytes - offsetof(struct sockaddr_un, sun_path)) : 0;
}

static bool option_of(int number, int option, int *value)
{
    socklen_t size = sizeof *value;
    return getsockopt(number, SOL_SOCKET, option, value, &size) == 0;
}

static bool holds(const uint64_t *keys, uint64_t key)
{
    bool found = false;
    for (unsigned place = 0; !found && place < ADDRESSES_AT_MOST; place++)
        found = __atomic_load_n(&keys[place], __ATOMIC_RELAXED) == key;
    return found;
}

static void find_listeners(uint64_t *keys)
{
    struct sockaddr_storage address;
    unsigned found = 0;
    for (int each = 0, missing = 0; each < NUMBERS_AT_MOST && missing < GAP && found < ADDRESSES_AT_MOST; each++) {
        socklen_t bytes = sizeof address;
        int listens = 0;
        bool is_socket = option_of(each, SO_ACCEPTCONN, &listens);
        missing = !is_socket && errno == EBADF ? missing + 1 : 0;
        if (listens && getsockname(each, (struct sockaddr *)&address, &bytes) == 0 && !holds(keys, key_of(&address, bytes)))
            keys[found++] = key_of(&address, bytes);
    }
}

/* Stores nothing if a pause has ended meanwhile: listeners may have been made during it. */
static __attribute__((noinline)) void ask_for_listeners(unsigned now)
{
    uint64_t keys[ADDRESSES_AT_MOST] = {0};
    find_listeners(keys);
    if (__atomic_load_n(&period, __ATOMIC_RELAXED) != now)
        return;
    for (unsigned place = 0; place < ADDRESSES_AT_MOST; place++)
        __atomic_store_n(&addresses[place], keys[place], __ATOMIC_RELAXED);
    __atomic_store_n(&asked_in, now, __ATOMIC_RELEASE);
}

static bool listens_at(uint64_t key)
{
    unsigned now = __atomic_load_n(&period, __ATOMIC_RELAXED);
    if (key && __atomic_load_n(&asked_in, __ATOMIC_ACQUIRE) != now)
        ask_for_listeners(now);
    return key && holds(addresses, key);
}

/* Its own address names a socket whose peer has none, and tells whether this process has accepted it, perhaps unseen. */
static __attribute__((noinline)) void learn_own_address(struct descriptor *known, int number, bool may_be_accepted)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    int sort = 0;
    if (getsockname(number, (struct sockaddr *)&address, &bytes))
        return;
    if (address.ss_family == AF_UNIX)
        known->known = KNOWN_LOCAL;
    bool is_named_by_it = !known->name && (known->name = intern_address(&address, bytes));
    may_be_accepted = may_be_accepted && listens_at(key_of(&address, bytes));
    if (!(is_named_by_it || may_be_accepted) || !option_of(number, SO_TYPE, &sort))
        return;
    if (sort == SOCK_DGRAM) {
        if (is_named_by_it)
            known->role = ROLE_LISTENER; /* it has an address, and no peer */
    } else if (may_be_accepted) {
        known->role = ROLE_CONNECTION;
        __atomic_store_n(&service, SERVICE_USED, __ATOMIC_RELAXED);
    }
}

static void learn_socket(struct descriptor *known, int number)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    int listens = 0;
    known->kind = KIND_net;
    __atomic_store_n(&networks_known, true, __ATOMIC_RELAXED);
    if (option_of(number, SO_ACCEPTCONN, &listens) && listens)
        known->role = ROLE_LISTENER;
    bool has_peer = getpeername(number, (struct sockaddr *)&address, &bytes) == 0;
    if (has_peer) {
        known->name = intern_address(&address, bytes);
        known->known = address.ss_family == AF_UNIX ? KNOWN_LOCAL : KNOWN;
    }
    if (!known->name || known->role == ROLE_NONE)
        learn_own_address(known, number, has_peer && known->role == ROLE_NONE);
    if (!known->name)
        known->name = intern_literal("<socket>");
}

/* Of what has no path: `<pipe>`, `<eventpoll>`. */
static uint32_t intern_type(char *text)
{
    char type[64];
    char *named = strncmp(text, "anon_inode:", 11) == 0 ? text + 11 + (text[11] == '[') : text;
    named[strcspn(named, ":]")] = 0;
    return detail_intern(type, (size_t)snprintf(type, sizeof type, "<%.40s>", named));
}

/* Its path, or its type if it has none. False if there is not room for it. */
static __attribute__((noinline)) bool intern_link_in(size_t room, int number, uint32_t *detail)
{
    char link[64], text[room];
    snprintf(link, sizeof link, OWN_PROC "/fd/%d", number);
    ssize_t bytes = readlink(link, text, room - 1);
    if (bytes == (ssize_t)room - 1)
        return false;
    text[bytes < 0 ? 0 : bytes] = 0;
    if (bytes <= 0)
        *detail = detail_intern(link, (size_t)snprintf(link, sizeof link, "descriptor %d", number));
    else
        *detail = text[0] == '/' ? path_intern(KIND_file, text, (size_t)bytes) : intern_type(text);
    return true;
}

/* The stack may be small, and few paths are long. */
static uint32_t intern_link(int number)
{
    enum { ORDINARY_BYTES = 256, LONGEST_BYTES = 4096 + 1 };
    uint32_t detail = 0;
    if (!intern_link_in(ORDINARY_BYTES, number, &detail))
        intern_link_in(LONGEST_BYTES, number, &detail);
    return detail;
}

/* Its role may be known already. */
static void learn(struct descriptor *known, int number)
{
    static const char *const streams[] = {"<stdin>", "<stdout>", "<stderr>"};
    struct stat status;
    *known = (struct descriptor){.known = KNOWN, .kind = KIND_file, .role = known->role};
    bool there = fstat(number, &status) == 0;
    if (there && S_ISSOCK(status.st_mode)) {
        learn_socket(known, number);
        return;
    }
    bool has_program_behind = there && is_master(&status);
    if (has_program_behind || (there && S_ISFIFO(status.st_mode)))
        known->kind = KIND_process;
    if (number <= STDERR_FILENO || (there && !has_program_behind && S_ISCHR(status.st_mode) && isatty(number)))
        known->kind = KIND_screen;
    known->name = number <= STDERR_FILENO ? intern_literal(streams[number]) : there ? intern_link(number) : 0;
    known->known = there;
    if (has_program_behind || (known->kind == KIND_file && known->name == intern_literal("<pidfd>")))
        known->role = ROLE_PROCESS;
}

void first_use(struct descriptor *known, int number)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int saved = errno;
    struct descriptor before = descriptor_now(known), learned = before;
    learn(&learned, number);
    put_first(known, &before, &learned);
    errno = saved;
    reach(number);
    own_end(thread, begin);
}

struct descriptor descriptor_look(int number)
{
    struct descriptor found = {0};
    if (number >= 0 && number < DESCRIPTORS_KNOWN)
        found = descriptor_now(&descriptors[number]);
    if (number < 0 || found.known)
        return found;
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int saved = errno;
    learn(&found, number);
    errno = saved;
    own_end(thread, begin);
    return found;
}

size_t descriptor_path(int number, char *path, size_t room)
{
    char link[64];
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int saved = errno;
    snprintf(link, sizeof link, OWN_PROC "/fd/%d", number);
    ssize_t bytes = number < 0 ? -1 : readlink(link, path, room);
    errno = saved;
    own_end(thread, begin);
    return bytes > 0 && bytes < (ssize_t)room && path[0] == '/' ? (size_t)bytes : 0;
}

static void serve_nobody(void)
{
    __atomic_store_n(&listener, NO_LISTENER, __ATOMIC_RELAXED);
    __atomic_store_n(&service, SERVICE_NONE, __ATOMIC_RELAXED);
}

void forget_descriptors(void)
{
    int end = __atomic_exchange_n(&descriptors_end, 0, __ATOMIC_RELAXED);
    for (int number = 0; number < end; number++)
        descriptor_forget(number);
    __atomic_add_fetch(&period, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&watched_end, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&networks_known, false, __ATOMIC_RELAXED);
    serve_nobody();
}

void descriptor_forget(int number)
{
    if (number >= 0 && number < DESCRIPTORS_KNOWN)
        descriptor_put(&descriptors[number], &(struct descriptor){0});
}

static void note_inherited(int number)
{
    struct descriptor known = {0};
    learn(&known, number);
    if (known.kind != KIND_process) /* standard streams are screens */
        return;
    known.role = ROLE_INHERITED;
    descriptor_set(number, known);
}

static bool is_pipe(int number)
{
    struct stat status;
    return fstat(number, &status) == 0 && S_ISFIFO(status.st_mode);
}

enum { INHERITED_AT_MOST = 256 }; /* of a process with very many, the pipes are among the first, or a fork would take long */

void descriptors_inherited(void)
{
    struct thread *thread = current_thread;
    serve_nobody();
    if (!recorder_is_on() || !thread)
        return;
    struct reading begin = own_begin(thread);
    DIR *directory = opendir(OWN_PROC "/fd");
    const struct dirent *entry;
    for (int looked = 0; looked < INHERITED_AT_MOST && directory && (entry = readdir(directory)); looked++)
        if (entry->d_name[0] != '.' && is_pipe(atoi(entry->d_name)))
            note_inherited(atoi(entry->d_name));
    own_end(thread, begin);
    if (directory)
        closedir(directory);
}

static void set_other_end(int number, int other)
{
    __atomic_store_n(&descriptors[number].other_end, (uint16_t)(other + 1), __ATOMIC_RELAXED);
    reach(number);
}

void descriptors_are_ends(int one, int other)
{
    if (one < 0 || other < 0 || one >= DESCRIPTORS_KNOWN || other >= DESCRIPTORS_KNOWN)
        return;
    set_other_end(one, other);
    set_other_end(other, one);
}

static bool is_end_of(const struct stat *pipe, const struct stat *status)
{
    return status->st_ino == pipe->st_ino && status->st_dev == pipe->st_dev;
}

/* Whether this process has the other end open, as a duplicate that we did not see being made; true if that cannot be found out. The
   directory in /proc would show it, too, but reading it takes up one of the program's descriptors. */
static bool has_other_end_here(int number)
{
    struct stat pipe, status;
    int access = fcntl(number, F_GETFL) & O_ACCMODE, missing = 0, each = 0;
    bool found = fstat(number, &pipe) != 0;
    for (; !found && each < NUMBERS_AT_MOST && missing < GAP; each++) {
        bool is_open = fstat(each, &status) == 0;
        missing = is_open ? 0 : missing + 1;
        found = is_open && is_end_of(&pipe, &status) && (fcntl(each, F_GETFL) & O_ACCMODE) != access;
    }
    return found || each == NUMBERS_AT_MOST;
}

/* Ask the kernel whether the other end is still here. Once it is gone, it does not come back, so we need not ask again. */
static void ask_for_other_end(int number)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int saved = errno;
    if (!has_other_end_here(number))
        __atomic_store_n(&descriptors[number].other_end, OTHER_END_ELSEWHERE, __ATOMIC_RELAXED);
    errno = saved;
    own_end(thread, begin);
}

void look_for_other_end(int number, struct descriptor known)
{
    if (known.kind != KIND_process || !known.other_end || known.other_end == OTHER_END_ELSEWHERE)
        return;
    uint32_t end_of_other = __atomic_load_n(&descriptors[known.other_end - 1].other_end, __ATOMIC_RELAXED);
    if (end_of_other != (uint32_t)number + 1)
        ask_for_other_end(number);
}

bool is_of_child(struct descriptor known)
{
    return known.role == ROLE_PROCESS || (known.kind == KIND_process && known.other_end == OTHER_END_ELSEWHERE);
}

uint32_t descriptor_connects(int number, const struct sockaddr_storage *address, socklen_t bytes)
{
    struct descriptor *known = descriptor_known(number);
    struct descriptor now = known ? descriptor_now(known) : (struct descriptor){0};
    if (!known || now.kind != KIND_net)
        return 0;
    now.name = intern_address(address, bytes);
    now.role = ROLE_CLIENT;
    now.used_as = __atomic_load_n(&service, __ATOMIC_RELAXED);
    if (now.name)
        descriptor_put(known, &now);
    return now.name;
}

void descriptor_set(int number, struct descriptor known)
{
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return;
    known.known = KNOWN;
    descriptor_put(&descriptors[number], &known);
    reach(number);
}
