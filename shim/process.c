/* This process in the simulation: the page that both share, calls, turns and the clock. */

#include "process.h"
#include "waits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct nicety_header *nicety_shared;
struct nicety_slot *nicety_slot;

static _Atomic uint32_t *bell;
static uint32_t own_rank;
/* The id of this process. It is cached, because the system call would take longer than all other steps of a read of a
 * clock. */
static pid_t own_pid;
/* The id of the process that takes part in the simulation, once a process does. This is this process, or the process
 * from which it was forked. */
static _Atomic pid_t attached_pid;
/* Whether this thread has virtual time. The main thread has virtual time, and so have threads that have made a call. */
static _Thread_local int is_simulated;
static _Thread_local int phase;
/* Whether a thread that ends is outside, and whether it has communicated since its phase began. */
static _Thread_local int is_outside, has_communicated;
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;
/* The CPU time of the calling thread at the last reply. */
static uint64_t cpu_ns;
/* The number of calls and looks of all threads. Concurrent ones may be missing. */
static uint64_t calls;
/* The number of reads of files and of waits for files, of all threads. */
static _Atomic uint64_t uses_of_files;
/* The clock before the process takes part in the simulation. Later, this is the clock's last value before. It is a
 * whole number of seconds. So runs are equal, although processes may read a clock a different number of times
 * before. */
static _Atomic uint64_t early_ps;
/* Whether the simulator waits for the process. It does so after its reply, until the process is outside or makes a
 * call. */
static int has_turn;
/* Memory to free when the simulator has taken its post, by the place of the post. */
static void *to_free[NICETY_POSTS];

#define PS_PER_S 1000000000000ull
/* The cost of a read of a clock before the process takes part in the simulation. Some libraries wait for a time while
 * they are loaded (UCX for milliseconds). At the later, lower cost, these libraries would read the clock very often. */
#define EARLY_READ_PS 10000000ull

static void futex_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Returns whether the wait timed out. */
static int futex_wait(_Atomic uint32_t *word, uint32_t value) {
    static const struct timespec limit = {.tv_sec = 1};
    return syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) && errno == ETIMEDOUT;
}

static uint64_t thread_cpu_ns(void) {
    struct timespec now;
    /* This is the system call, not the preloaded function. */
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Finds the rank that the launcher of this process has set. The variables are those of runs without a launcher, of
 * MPICH, of Open MPI, and of PMIx. */
static int find_rank(uint32_t *rank) {
    static const char *const names[] = {"NICETY_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        char *end;
        if (!text || !*text)
            continue;
        unsigned long number = strtoul(text, &end, 10);
        if (!*end && number < UINT32_MAX) {
            *rank = (uint32_t)number;
            return 1;
        }
    }
    return 0;
}

static int is_fork;

static void begin_child(void) {
    own_pid = getpid();
    is_fork = 1;
}

/* Prints the reason for refusing a process that does not take part. */
static int refuse(void) {
    static int told;
    if (is_fork && !told++) {
        nicety_slot->fork = (uint32_t)own_pid;
        fprintf(stderr, "nicety: process %d is a fork of rank %u; only one process of a rank can use the network, and it is another one\n",
                (int)own_pid, own_rank);
    }
    return -ENODEV;
}

static int is_gone(uint32_t pid) {
    return kill((pid_t)pid, 0) && errno == ESRCH;
}

static void ring_bell(void) {
    atomic_fetch_add(bell, 1);
    if (atomic_load(&nicety_shared->asleep))
        futex_wake(bell);
}

/* Shows without a wake-up that the process goes on. The simulator reads the bell from time to time. */
static void ring_softly(void) {
    atomic_fetch_add(bell, 1);
}

/* The simulator watches the first process of a rank, because this process may end before it takes part in the
 * simulation. The first process may be a helper, or a shell that starts the process that takes part. After its end, the
 * next process takes its place. */
static void note_loaded(void) {
    static const struct timespec limit = {.tv_nsec = 50000000};
    uint32_t before = atomic_load(&nicety_slot->loaded);
    if (nicety_slot->pid)
        return;
    if ((before && !is_gone(before)) || !atomic_compare_exchange_strong(&nicety_slot->loaded, &before, (uint32_t)own_pid))
        return;
    /* The field has the end of the previous process. */
    nicety_slot->end = END_UNKNOWN;
    ring_bell();
    /* The simulator detects the end of a process only if it watches the process. */
    uint32_t watched = atomic_load(&nicety_slot->watched);
    if (watched != (uint32_t)own_pid)
        syscall(SYS_futex, &nicety_slot->watched, FUTEX_WAIT, watched, &limit, NULL, 0);
}

/* Maps a part of the shared pages. On a machine with larger pages, the neighbours of the part are also mapped. */
static char *map_part(int file, off_t offset, size_t bytes, int protection) {
    off_t before = offset & (sysconf(_SC_PAGESIZE) - 1);
    char *start = mmap(NULL, bytes + (size_t)before, protection, MAP_SHARED, file, offset - before);
    return start == MAP_FAILED ? NULL : start + before;
}

/* NICETY_EXEC is the path of the shared pages. Launchers and other programs without a rank are not simulated. */
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("NICETY_EXEC");
    if (!path || !find_rank(&own_rank))
        return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        fprintf(stderr, "nicety: %s, the simulation of this run, cannot be opened: %s\n", path, strerror(errno));
        _exit(126);
    }
    struct nicety_header *header = (struct nicety_header *)map_part(file, 0, NICETY_PAGE, PROT_READ);
    if (!header || header->magic != NICETY_MAGIC || header->version != NICETY_VERSION) {
        fprintf(stderr, "nicety: %s is not the simulation of a run of this version\n", path);
        _exit(126);
    }
    if (own_rank >= header->ranks) {
        fprintf(stderr, "nicety: rank %u has no host: the run has %u processes; give nicety exec -n the number that the program starts\n",
                own_rank, header->ranks);
        _exit(126);
    }
    bell = (_Atomic uint32_t *)map_part(file, NICETY_BELL, NICETY_PAGE, PROT_READ | PROT_WRITE);
    off_t own = NICETY_SLOTS + (off_t)NICETY_SLOT_BYTES * own_rank;
    struct nicety_slot *slot = (struct nicety_slot *)map_part(file, own, NICETY_SLOT_BYTES, PROT_READ | PROT_WRITE);
    close(file);
    if (!bell || !slot) {
        fprintf(stderr, "nicety: %s, the simulation of this run, cannot be mapped: %s\n", path, strerror(errno));
        _exit(126);
    }
    nicety_shared = header;
    nicety_slot = slot;
    /* The simulator reads and writes the buffers of messages. */
    prctl(PR_SET_PTRACER, (unsigned long)header->simulator, 0, 0, 0);
    cpu_ns = thread_cpu_ns();
    own_pid = getpid();
    pthread_atfork(NULL, NULL, begin_child);
    is_simulated = 1;
    note_loaded();
}

uint32_t nicety_rank(void) {
    return own_rank;
}

int nicety_attached(void) {
    return own_pid && atomic_load_explicit(&attached_pid, memory_order_relaxed) == own_pid;
}

int nicety_is_simulated(void) {
    return nicety_slot && is_simulated && phase != NICETY_ENDS;
}

int nicety_has_time(void) {
    return is_simulated;
}

int nicety_starts(void) {
    return phase == NICETY_STARTS;
}

int nicety_is_idle(void) {
    return phase != NICETY_RUNS && !has_communicated;
}

/* Rounds up to the next second. */
static void round_up(void) {
    early_ps = (early_ps / PS_PER_S + 1) * PS_PER_S;
}

int nicety_attach(void) {
    if (!nicety_slot)
        return ENODEV;
    uint32_t none = 0;
    if (nicety_attached())
        return 0;
    if (atomic_compare_exchange_strong(&nicety_slot->pid, &none, (uint32_t)own_pid)) {
        /* The field may have the end of a process before this one. */
        nicety_slot->end = END_UNKNOWN;
        attached_pid = own_pid;
        is_simulated = 1;
        round_up();
        return 0;
    }
    fprintf(stderr, "nicety: rank %u is process %u already; only one process of a rank can use the network\n", own_rank, none);
    return EBUSY;
}

static void ring(uint32_t turn) {
    atomic_store_explicit(&nicety_slot->turn, turn, memory_order_release);
    ring_bell();
}

int nicety_is_alone(void) {
    return is_gone(nicety_shared->simulator);
}

static void wait_for_turn(void) {
    _Atomic uint32_t *turn = &nicety_slot->turn;
    uint32_t now = TURN_CALL, call = TURN_CALL;
    has_turn = 1;
    uint32_t most = atomic_load_explicit(&nicety_shared->spins, memory_order_relaxed);
    for (uint32_t looks = 0; looks < most && now == TURN_CALL; looks++) {
        now = atomic_load_explicit(turn, memory_order_acquire);
        if (now == TURN_RUN)
            return;
#if defined __x86_64__ || defined __i386__
        __builtin_ia32_pause();
#endif
    }
    /* The simulator wakes only a process that sleeps. */
    atomic_compare_exchange_strong(turn, &call, TURN_SLEEP);
    while ((now = atomic_load_explicit(turn, memory_order_acquire)) != TURN_RUN)
        /* The simulator may have gone without a reply. */
        if (futex_wait(turn, now) && nicety_is_alone())
            _exit(1);
}

/* Times end at 2^64 ps. The simulator reports this end. */
static uint64_t later(uint64_t ps, uint64_t by) {
    return ps < UINT64_MAX - by ? ps + by : UINT64_MAX;
}

static uint64_t looks_ps(uint32_t looks) {
    uint64_t ps;
    return __builtin_mul_overflow(looks, nicety_shared->look_cost_ps, &ps) ? UINT64_MAX : ps;
}

/* Adds the CPU time of the calling thread since the last measurement. */
static void measure(void) {
    if (!nicety_shared->measured)
        return;
    uint64_t now = thread_cpu_ns();
    if (now > cpu_ns) {
        double ps = (double)(now - cpu_ns) * 1000.0 * nicety_shared->scale;
        nicety_slot->spent_ps = later(nicety_slot->spent_ps, ps < 0x1p64 ? (uint64_t)ps : UINT64_MAX);
    }
    cpu_ns = now;
}

static uint32_t waiting_posts(void) {
    return atomic_load_explicit(&nicety_slot->posted, memory_order_relaxed) -
           atomic_load_explicit(&nicety_slot->taken, memory_order_acquire);
}

int nicety_look(void) {
    nicety_catch_up();
    if (!nicety_attached() || phase != NICETY_RUNS || !nicety_slot->looks_left)
        return 0;
    pthread_mutex_lock(&calling);
    struct nicety_slot *own = nicety_slot;
    int is_known = 0;
    if (own->looks_left && !waiting_posts() && own->now_ps < own->quiet_ps) {
        measure();
        is_known = later(later(own->now_ps, own->spent_ps), looks_ps(own->looks + 1)) <= own->quiet_ps;
    }
    if (is_known)
        own->looks_left--, own->looks++, own->looks_of_waits += nicety_kind_of_look() == LOOKS_MAY_WAIT;
    pthread_mutex_unlock(&calling);
    calls += (uint64_t)is_known;
    return is_known;
}

void nicety_count_look(void) {
    calls++;
}

uint64_t nicety_calls(void) {
    return calls;
}

void nicety_use_file(void) {
    atomic_fetch_add_explicit(&uses_of_files, 1, memory_order_relaxed);
}

uint64_t nicety_uses_of_files(void) {
    return atomic_load_explicit(&uses_of_files, memory_order_relaxed);
}

static struct nicety_post *ring_of(void) {
    return (struct nicety_post *)((char *)nicety_slot + NICETY_PAGE);
}

/* Makes the simulator carry out posted calls. The caller has the lock. */
static void carry_out(void) {
    measure();
    nicety_slot->call = CALL_POSTED;
    ring(TURN_CALL);
    wait_for_turn();
    if (nicety_shared->measured)
        cpu_ns = thread_cpu_ns();
}

static int leave(uint32_t how) {
    nicety_catch_up();
    if (!nicety_attached() || !is_simulated || nicety_slot->ended)
        return 0;
    uint32_t run = TURN_RUN;
    /* Another thread may be in a call. */
    if (!atomic_compare_exchange_strong(&nicety_slot->turn, &run, how))
        return 0;
    if (has_turn)
        ring_bell();
    else
        ring_softly();
    has_turn = 0;
    return 1;
}

/* Ends a wait outside the simulation if no process communicates yet. No time passes then, so the process needs no turn
 * before its next call. Returns whether the wait has ended. */
static int goes_on_early(void) {
    uint32_t outside = TURN_OUTSIDE;
    if (atomic_load_explicit(&nicety_shared->begun, memory_order_acquire) ||
        !atomic_compare_exchange_strong(&nicety_slot->turn, &outside, TURN_RUN))
        return 0;
    ring_softly();
    return 1;
}

static int64_t call_now(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count) {
    int error = errno;
    is_simulated = 1;
    calls++;
    pthread_mutex_lock(&calling);
    measure();
    nicety_slot->call = call;
    nicety_slot->flags = flags;
    for (unsigned i = 0; i < count; i++)
        nicety_slot->args[i] = args[i];
    ring(TURN_CALL);
    wait_for_turn();
    int64_t result = nicety_slot->result;
    if (nicety_shared->measured)
        cpu_ns = thread_cpu_ns();
    pthread_mutex_unlock(&calling);
    errno = error;
    return result;
}

/* Threads that have used the network. */
static _Atomic int users;

int nicety_is_shared(void) {
    return atomic_load_explicit(&users, memory_order_relaxed) > 1;
}

/* Records that the calling thread uses the network. The order of several threads depends on this machine. */
static void use(void) {
    static _Thread_local int is_user;
    if (!is_user && (is_user = 1) && atomic_fetch_add(&users, 1) == 1)
        fprintf(stderr, "nicety: a second thread of rank %u uses the network: the times of this run depend on how this machine "
                        "schedules the threads\n",
                own_rank);
}

/* `come` and `go` enclose a call of the simulator by a thread that ends. */
static void come(void) {
    if (is_outside)
        call_now(CALL_BACK, 0, NULL, 0);
    is_outside = 0;
}

static void go(void) {
    is_outside = phase == NICETY_ENDS && leave(TURN_ENDS);
}

static int post(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, size_t copied, void *memory) {
    if (!nicety_attached()) {
        free(memory);
        return refuse();
    }
    int error = errno;
    nicety_catch_up();
    use();
    is_simulated = has_communicated = 1;
    come();
    pthread_mutex_lock(&calling);
    if (waiting_posts() == NICETY_POSTS)
        carry_out();
    else
        measure();
    uint32_t number = atomic_load_explicit(&nicety_slot->posted, memory_order_relaxed), place = number % NICETY_POSTS;
    struct nicety_post *own = &ring_of()[place];
    free(to_free[place]);
    to_free[place] = memory;
    own->call = call;
    own->flags = flags;
    own->spent_ps = nicety_slot->spent_ps;
    memcpy(own->args, args, count * sizeof *args);
    if (copied) {
        memcpy(own->bytes, (const void *)(uintptr_t)args[0], copied);
        own->args[0] = (uintptr_t)own->bytes;
        own->flags |= FLAG_INLINE;
    }
    if (call == CALL_RECV)
        nicety_slot->receiving++;
    else if (call != CALL_PEEK && call != CALL_CANCEL)
        nicety_slot->sending++;
    atomic_store_explicit(&nicety_slot->posted, number + 1, memory_order_release);
    pthread_mutex_unlock(&calling);
    go();
    errno = error;
    return 0;
}

int nicety_post(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, size_t copied) {
    return post(call, flags, args, count, copied, NULL);
}

int nicety_post_freed(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, void *memory) {
    return post(call, flags, args, count, 0, memory);
}

int64_t nicety_call(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count) {
    if (!nicety_attached())
        return refuse();
    nicety_catch_up();
    if (call != CALL_BACK && call != CALL_POSTED && call != CALL_END) {
        use();
        has_communicated = 1;
    }
    come();
    int64_t result = call_now(call, flags, args, count);
    if (call != CALL_END)
        go();
    return result;
}

int nicety_leave(void) {
    return phase == NICETY_ENDS ? 0 : leave(TURN_OUTSIDE);
}

void nicety_enter(int next) {
    nicety_catch_up();
    come();
    if (phase == NICETY_STARTS && nicety_attached())
        round_up();
    phase = next;
    has_communicated = 0;
    if (phase == NICETY_ENDS && nicety_attached() && !nicety_slot->ended) {
        /* All time that was spent before this phase counts. */
        call_now(CALL_POSTED, 0, NULL, 0);
        go();
    }
}

/* Returns whether every rank has closed the network. */
static int all_have_ended(void) {
    return atomic_load_explicit(&nicety_shared->ended, memory_order_acquire) >= nicety_shared->ranks;
}

void nicety_end_together(void) {
    static const struct timespec look = {.tv_nsec = 1000000};
    if (!nicety_attached() || !nicety_slot->ended)
        return;
    while (!all_have_ended() && !nicety_is_alone())
        /* This is the system call, not the preloaded function. */
        syscall(SYS_nanosleep, &look, NULL);
}

void nicety_return(void) {
    if (!goes_on_early())
        nicety_call(CALL_BACK, 0, NULL, 0);
}

/* Has posted calls carried out, because they may take time. The lock is only tried, because a signal may have
 * interrupted a call. */
static void settle(void) {
    nicety_catch_up();
    if (!nicety_slot->ended && waiting_posts() && !pthread_mutex_trylock(&calling)) {
        int error = errno;
        carry_out();
        errno = error;
        pthread_mutex_unlock(&calling);
    }
}

uint64_t nicety_now_ps(void) {
    if (!nicety_attached())
        return early_ps;
    settle();
    return later(early_ps, later(later(nicety_slot->now_ps, nicety_slot->spent_ps), looks_ps(nicety_slot->looks)));
}

uint64_t nicety_clock_ps(void) {
    if (nicety_attached() && phase != NICETY_STARTS) {
        settle();
        measure();
        nicety_slot->spent_ps = later(nicety_slot->spent_ps, nicety_shared->clock_cost_ps);
        nicety_slot->clock_reads++;
    } else {
        early_ps += EARLY_READ_PS;
    }
    return nicety_now_ps();
}

void nicety_sleep_ps(uint64_t ps) {
    if (!nicety_attached() || phase == NICETY_STARTS)
        early_ps += ps;
    else if (nicety_slot->ended)
        nicety_slot->spent_ps = later(nicety_slot->spent_ps, ps);
    else
        nicety_call(CALL_SLEEP, 0, &ps, 1);
}
