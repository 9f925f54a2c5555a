/* Clocks and waits of a process, in virtual time. The library is loaded before the C library, and these functions
 * replace functions of the C library.
 *
 * Until the process takes part in the simulation, waits are real. Clocks then advance by the time of waits and by the
 * cost of reading clocks. */

#define _GNU_SOURCE

#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define PS_PER_NS 1000ull
#define EXPORT __attribute__((visibility("default")))

/* The function of the C library behind a preloaded one. */
#define REAL(name)                                                                                                     \
    static __typeof__(name) *real;                                                                                     \
    if (!real)                                                                                                         \
        *(void **)&real = dlsym(RTLD_NEXT, #name)

/* Time zero on the clocks without a date. */
#define MONOTONIC_NS NS_PER_S

static int is_simulated(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
        return nicety_is_simulated();
    default:
        return 0;
    }
}

/* Returns whether waits of the calling thread pass in the simulation. */
static int is_waiter(void) {
    return nicety_attached() && nicety_is_simulated() && !nicety_starts();
}

static uint64_t zero_ns(clockid_t clock) {
    int is_date = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    return is_date ? nicety_shared->epoch_ns : MONOTONIC_NS;
}

static struct timespec spec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static int is_valid(const struct timespec *time) {
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)NS_PER_S;
}

/* Returns a time in picoseconds, limited to 64 bits. Virtual time ends there. */
static uint64_t ps_of(uint64_t ns) {
    return ns < UINT64_MAX / PS_PER_NS ? ns * PS_PER_NS : UINT64_MAX;
}

static uint64_t span_ps(const struct timespec *time) {
    uint64_t seconds = (uint64_t)time->tv_sec;
    return seconds < UINT32_MAX ? ps_of(seconds * NS_PER_S + (uint64_t)time->tv_nsec) : UINT64_MAX;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!is_simulated(clock)) {
        REAL(clock_gettime);
        return real(clock, now);
    }
    *now = spec(zero_ns(clock) + nicety_clock_ps() / PS_PER_NS);
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    if (!nicety_is_simulated()) {
        REAL(gettimeofday);
        return real(now, zone);
    }
    struct timespec time = spec(zero_ns(CLOCK_REALTIME) + nicety_clock_ps() / PS_PER_NS);
    *now = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
    return 0;
}

EXPORT int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

EXPORT time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}

/* A process has one virtual time, which advances by the process's calls. A thread that sleeps during these calls would
 * have to wake at a time that the other threads do not know. */
static void refuse_to_sleep(const char *name) {
    if (!nicety_attached() || nicety_slot->ended || nicety_has_time() || syscall(SYS_gettid) == getpid())
        return;
    fprintf(stderr,
            "nicety: a second thread of rank %u calls %s: only the main thread, or one that uses the network, can sleep in simulated time; "
            "sleep there, or wait for the event itself (a condition, a file)\n",
            nicety_rank(), name);
    _exit(126);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *span, struct timespec *left) {
    REAL(clock_nanosleep);
    refuse_to_sleep("clock_nanosleep");
    if (!is_simulated(clock))
        return real(clock, flags, span, left);
    if (!is_valid(span))
        return EINVAL;
    uint64_t ps = span_ps(span);
    if (flags & TIMER_ABSTIME) {
        uint64_t now = zero_ns(clock) + nicety_now_ps() / PS_PER_NS;
        uint64_t seconds = (uint64_t)span->tv_sec;
        uint64_t until = seconds < UINT64_MAX / NS_PER_S ? seconds * NS_PER_S + (uint64_t)span->tv_nsec : UINT64_MAX;
        ps = until > now ? ps_of(until - now) : 0;
    }
    if (!is_waiter()) {
        struct timespec wait = spec(ps / PS_PER_NS);
        int others_go_on = nicety_leave();
        int error = real(clock, 0, &wait, flags & TIMER_ABSTIME ? NULL : left);
        if (others_go_on)
            nicety_return();
        if (error)
            return error;
    }
    nicety_sleep_ps(ps);
    return 0;
}

EXPORT int nanosleep(const struct timespec *span, struct timespec *left) {
    refuse_to_sleep("nanosleep");
    if (!nicety_is_simulated()) {
        REAL(nanosleep);
        return real(span, left);
    }
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, span, left);
    return errno ? -1 : 0;
}

/* This is the declaration of threads.h, which glibc before 2.28 lacks. */
int thrd_sleep(const struct timespec *span, struct timespec *left);

EXPORT int thrd_sleep(const struct timespec *span, struct timespec *left) {
    int error = clock_nanosleep(CLOCK_REALTIME, 0, span, left);
    return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

EXPORT int usleep(useconds_t span) {
    struct timespec time = spec((uint64_t)span * 1000);
    return nanosleep(&time, NULL);
}

/* One process runs at a time, so there is no other process to yield to. A thread without a call since its last yield waits for another
 * thread, which may need the CPU. */
EXPORT int sched_yield(void) {
    static _Thread_local uint64_t last;
    uint64_t calls = nicety_calls();
    if (!is_waiter() || last == calls) {
        REAL(sched_yield);
        return real();
    }
    last = calls;
    return 0;
}

EXPORT unsigned sleep(unsigned seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds};
    nanosleep(&time, NULL);
    return 0;
}

/* A wait of an attached process. A wait for something that is ready takes no time. Otherwise, other processes go on. If
 * the timeout passes, the same time passes in the simulation. */

#define WAITED(call, ps)                                                                                               \
    int left = nicety_leave();                                                                                         \
    int waited = call, error = errno;                                                                                  \
    if (left)                                                                                                          \
        nicety_return();                                                                                               \
    if (!waited && nicety_is_simulated())                                                                              \
        nicety_sleep_ps(ps);                                                                                           \
    errno = error;                                                                                                     \
    return waited

/* A real look at files, for a limited time. */
struct look {
    int (*look)(const struct look *look, const struct timespec *limit);
    union {
        struct pollfd *polled;
        struct epoll_event *events;
    };
    int file;
    nfds_t count;
    const sigset_t *mask;
    fd_set *sets[3];
};

/* A wait with a limit passes in the simulation in parts, with a look at the files before each part. Other processes
 * change files in no virtual time, so the next look finds the change. Each look lasts for a part of real time, so that
 * threads outside the simulation can run. */
#define PARTS 10
#define LONGEST_REAL_PS 10000000000ull

static int wait_in_parts(const struct look *look, uint64_t ps) {
    static const struct timespec now = {0, 0};
    if (!look->count) {
        nicety_sleep_ps(ps);
        return 0;
    }
    struct timespec real = spec((ps / PARTS < LONGEST_REAL_PS ? ps / PARTS : LONGEST_REAL_PS) / PS_PER_NS);
    for (uint64_t part = 0; part < PARTS; part++) {
        int found = look->look(look, &real);
        if (found)
            return found;
        nicety_sleep_ps(part + 1 < PARTS ? ps / PARTS : ps - ps / PARTS * part);
    }
    return look->look(look, &now);
}

/* After the end of the network, a wait for files is real, because no event of the simulation can end the wait. */
static int waits_in_parts(nfds_t count, const struct timespec *limit) {
    return limit && is_valid(limit) && is_waiter() && (!count || !nicety_slot->ended);
}

static int look_polled(const struct look *look, const struct timespec *limit) {
    REAL(ppoll);
    return real(look->polled, look->count, limit, look->mask);
}

static int poll_for(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    REAL(ppoll);
    static const struct timespec now = {0, 0};
    nicety_use_file();
    if (limit && !is_valid(limit))
        return real(files, count, limit, mask);
    int found = real(files, count, &now, mask);
    if (found || (limit && limit->tv_sec == 0 && limit->tv_nsec == 0))
        return found;
    if (waits_in_parts(count, limit))
        return wait_in_parts(&(struct look){.look = look_polled, .polled = files, .count = count, .mask = mask},
                             span_ps(limit));
    WAITED(real(files, count, limit, mask), limit ? span_ps(limit) : 0);
}

EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    return poll_for(files, count, limit, mask);
}

EXPORT int poll(struct pollfd *files, nfds_t count, int ms) {
    struct timespec limit = spec(ms > 0 ? (uint64_t)ms * 1000000 : 0);
    return poll_for(files, count, ms < 0 ? NULL : &limit, NULL);
}

/* The sets are changed only if something is found. */
static int look_selected(const struct look *look, const struct timespec *limit) {
    REAL(pselect);
    fd_set found[3], *of[3];
    for (int i = 0; i < 3; i++) {
        of[i] = look->sets[i] ? &found[i] : NULL;
        if (of[i])
            found[i] = *look->sets[i];
    }
    int count = real((int)look->count, of[0], of[1], of[2], limit, look->mask);
    for (int i = 0; count > 0 && i < 3; i++)
        if (of[i])
            *look->sets[i] = found[i];
    return count;
}

EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                   const struct timespec *restrict limit, const sigset_t *restrict mask) {
    REAL(pselect);
    nicety_use_file();
    if ((limit && (!is_valid(limit) || (limit->tv_sec == 0 && limit->tv_nsec == 0))) || count < 0 || count > FD_SETSIZE)
        return real(count, in, out, other, limit, mask);
    static const struct timespec now = {0, 0};
    struct look look = {.look = look_selected, .count = (nfds_t)count, .mask = mask, .sets = {in, out, other}};
    int there = look_selected(&look, &now);
    if (there)
        return there;
    if (waits_in_parts((nfds_t)count, limit)) {
        int found = wait_in_parts(&look, span_ps(limit));
        for (int i = 0; !found && i < 3; i++)
            if (look.sets[i])
                FD_ZERO(look.sets[i]);
        return found;
    }
    WAITED(real(count, in, out, other, limit, mask), limit ? span_ps(limit) : 0);
}

EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                  struct timeval *restrict limit) {
    if (!nicety_is_simulated()) {
        REAL(select);
        return real(count, in, out, other, limit);
    }
    if (!limit)
        return pselect(count, in, out, other, NULL, NULL);
    struct timespec span = {.tv_sec = limit->tv_sec, .tv_nsec = limit->tv_usec * 1000};
    if (limit->tv_usec >= 1000000) {
        span.tv_sec += limit->tv_usec / 1000000;
        span.tv_nsec = limit->tv_usec % 1000000 * 1000;
    }
    uint64_t start = nicety_now_ps();
    int found = pselect(count, in, out, other, &span, NULL);
    if (is_valid(&span)) {
        /* Linux stores the rest of the limit in `limit`. */
        uint64_t all = span_ps(&span), spent = nicety_now_ps() - start;
        struct timespec left = spec(all > spent ? (all - spent) / PS_PER_NS : 0);
        *limit = (struct timeval){.tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000};
    }
    return found;
}

static int look_at_events(const struct look *look, const struct timespec *limit) {
    REAL(epoll_pwait);
    /* A limit of less than a millisecond means one look. */
    return real(look->file, look->events, (int)look->count, (int)(limit->tv_nsec / 1000000), look->mask);
}

static int events_for(int file, struct epoll_event *events, int most, const struct timespec *limit,
                      const sigset_t *mask) {
    REAL(epoll_pwait);
    nicety_use_file();
    int found = real(file, events, most, 0, mask);
    if (found || (limit && limit->tv_sec == 0 && limit->tv_nsec == 0))
        return found;
    if (most > 0 && waits_in_parts((nfds_t)most, limit))
        return wait_in_parts(&(struct look){.look = look_at_events,
                                            .events = events,
                                            .file = file,
                                            .count = (nfds_t)most,
                                            .mask = mask},
                             span_ps(limit));
    uint64_t ps = limit ? span_ps(limit) : 0, ms = ps / (1000000 * PS_PER_NS) + !!(ps % (1000000 * PS_PER_NS));
    WAITED(real(file, events, most, limit ? (int)(ms < INT_MAX ? ms : INT_MAX) : -1, mask), ps);
}

EXPORT int epoll_pwait(int file, struct epoll_event *events, int most, int ms, const sigset_t *mask) {
    struct timespec limit = spec(ms > 0 ? (uint64_t)ms * 1000000 : 0);
    return events_for(file, events, most, ms < 0 ? NULL : &limit, mask);
}

EXPORT int epoll_wait(int file, struct epoll_event *events, int most, int ms) {
    return epoll_pwait(file, events, most, ms, NULL);
}

/* C libraries from 2.35 on have this function. */
EXPORT int epoll_pwait2(int file, struct epoll_event *events, int most, const struct timespec *limit,
                        const sigset_t *mask) {
    if (limit && !is_valid(limit)) {
        errno = EINVAL;
        return -1;
    }
    return events_for(file, events, most, limit, mask);
}

/* Returns whether a read of this file may have to wait. Processes communicate with a launcher by sockets and pipes. */
static int may_wait(int file) {
    nicety_use_file();
    if (!is_waiter() || nicety_slot->ended)
        return 0;
    REAL(ppoll);
    static const struct timespec now = {0, 0};
    struct pollfd look = {.fd = file, .events = POLLIN};
    int error = errno, flags = fcntl(file, F_GETFL);
    int waits = flags >= 0 && !(flags & O_NONBLOCK) && real(&look, 1, &now, NULL) == 0;
    errno = error;
    return waits;
}

/* Makes a call during which other processes may go on, and returns the result of the call. */
#define WAITING(wait, call)                                                                                            \
    __typeof__(call) result;                                                                                           \
    int left = (wait) && nicety_leave();                                                                               \
    result = call;                                                                                                     \
    if (left)                                                                                                          \
        nicety_return();                                                                                               \
    return result

static ssize_t read_from(int file, void *into, size_t bytes) {
    REAL(read);
    WAITING(may_wait(file), real(file, into, bytes));
}

EXPORT ssize_t read(int file, void *into, size_t bytes) {
    ssize_t found = read_from(file, into, bytes);
    nicety_note_file(file, into, found);
    return found;
}

EXPORT ssize_t readv(int file, const struct iovec *into, int count) {
    REAL(readv);
    WAITING(may_wait(file), real(file, into, count));
}

EXPORT ssize_t recv(int file, void *into, size_t bytes, int flags) {
    REAL(recv);
    WAITING(may_wait(file) && !(flags & MSG_DONTWAIT), real(file, into, bytes, flags));
}

EXPORT ssize_t recvmsg(int file, struct msghdr *message, int flags) {
    REAL(recvmsg);
    WAITING(may_wait(file) && !(flags & MSG_DONTWAIT), real(file, message, flags));
}

/* The C library has unions of pointers here. */
#ifdef __SOCKADDR_ARG
#define SOME_ADDRESS __SOCKADDR_ARG
#define GIVEN_ADDRESS __CONST_SOCKADDR_ARG
#else
#define SOME_ADDRESS struct sockaddr *restrict
#define GIVEN_ADDRESS const struct sockaddr *
#endif

EXPORT ssize_t recvfrom(int file, void *restrict into, size_t bytes, int flags, SOME_ADDRESS from,
                        socklen_t *restrict length) {
    REAL(recvfrom);
    WAITING(may_wait(file) && !(flags & MSG_DONTWAIT), real(file, into, bytes, flags, from, length));
}

EXPORT int accept4(int file, SOME_ADDRESS from, socklen_t *restrict length, int flags) {
    REAL(accept4);
    WAITING(may_wait(file), real(file, from, length, flags));
}

EXPORT int accept(int file, SOME_ADDRESS from, socklen_t *restrict length) {
    return accept4(file, from, length, 0);
}

/* The call waits for room in the backlog of the other end, until the other end accepts. */
EXPORT int connect(int file, GIVEN_ADDRESS to, socklen_t length) {
    REAL(connect);
    int error = errno, flags = fcntl(file, F_GETFL);
    errno = error;
    WAITING(flags >= 0 && !(flags & O_NONBLOCK) && is_waiter() && !nicety_slot->ended, real(file, to, length));
}

/* Children are not simulated. A child that ends soon takes no virtual time. No other process goes on meanwhile, so the
 * speed of this machine has no effect. During a child that runs longer, other processes go on, because the child may
 * depend on them. */
#define CHILD_LOOKS 1000

EXPORT pid_t waitpid(pid_t child, int *status, int options) {
    REAL(waitpid);
    static const struct timespec look = {.tv_nsec = 1000000};
    int error = errno, waits = !(options & WNOHANG);
    for (int looks = 0; waits && is_waiter() && looks < CHILD_LOOKS; looks++) {
        pid_t found = real(child, status, options | WNOHANG);
        if (found)
            return found;
        /* This is the system call, not the preloaded function. */
        syscall(SYS_nanosleep, &look, NULL);
    }
    errno = error;
    WAITING(waits, real(child, status, options));
}

EXPORT pid_t wait(int *status) {
    return waitpid(-1, status, 0);
}
