/* Calls of MPI that wait, in front of MPI's own functions. These calls find the looks that are certain to repeat.
 *
 * A waiting call looks at its queue repeatedly until something has arrived. Two of its looks may follow each other
 * without network events or clock reads in between, and with the same contents of stack and registers. The call then
 * repeats the same steps until something arrives. So the simulator may carry out these looks together, each at its
 * cost. Other looks, such as those of MPI_Test, are carried out one by one, because the program decides about the next
 * step. */

#define _GNU_SOURCE

#include "process.h"
#include "waits.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* The maximum bytes of a call's stack. MPIs use fewer bytes. */
#define MOST_BYTES (64 << 10)

/* The frame of this thread's outermost waiting call. */
static _Thread_local const char *outermost;
/* The kind of the call's looks: LOOKS_WAIT or LOOKS_START. */
static _Thread_local int kind;
/* The call's stack at a look that found nothing. */
static _Thread_local struct {
    char *bytes;
    const char *first;
    size_t count;
    /* The number of calls, clock reads and uses of files of the process at this look. */
    uint64_t calls, clock_reads, outside;
    /* The number of looks so far, and the number of the next look to compare. */
    unsigned looks, next;
} seen;

/* A wait begins with a look or two that differ from the later, equal ones. In a call that returns only with its result,
 * the first looks are deferred, and carried out in one call with the next one. If another call comes first, they are
 * carried out before it. If one of them finds something there, the process reads it behind that call. That is not exact,
 * so the thread defers none after that. */
static _Thread_local int may_defer, deferred, is_late;

/* Returns whether the process has done nothing but one look since the last look. */
static int is_next_look(void) {
    return seen.looks && seen.calls == nicety_calls() && seen.clock_reads == nicety_slot->clock_reads &&
           seen.outside == nicety_uses_of_files();
}

/* Returns memory for a stack. The one thread that starts MPI takes no memory for this from the program's heap. The
 * heap's layout would otherwise change the places of buffers, and these have an effect on cards with pages. */
static char *room(void) {
    static char of_start[MOST_BYTES];
    static _Thread_local char *of_waits;
    if (kind == LOOKS_START)
        return of_start;
    return of_waits ? of_waits : (of_waits = malloc(MOST_BYTES));
}

static int keep(const char *first, size_t count) {
    if (!(seen.bytes = room()))
        return 0;
    memcpy(seen.bytes, first, count);
    seen.first = first;
    seen.count = count;
    return 1;
}

int nicety_repeats(const void *stack) {
    const char *first = stack;
    if (!outermost || first >= outermost || !nicety_attached() || nicety_is_shared())
        return 0;
    size_t count = (size_t)(outermost - first);
    if (count > MOST_BYTES)
        return 0;
    if (!is_next_look()) {
        seen.looks = 0;
        seen.next = 1;
        keep(first, count);
        return 0;
    }
    if (seen.looks < seen.next)
        return 0;
    if (seen.first == first && seen.count == count && !memcmp(seen.bytes, first, count))
        return kind;
    /* The looks may repeat later, so they are compared at increasing distances. */
    seen.next = seen.looks + 1;
    if (seen.looks & (seen.looks - 1))
        seen.next = 2 * seen.looks;
    keep(first, count);
    return 0;
}

uint64_t nicety_kind_of_look(void) {
    return outermost && kind == LOOKS_WAIT ? LOOKS_MAY_WAIT : LOOKS_ONCE;
}

static int defer(void) {
    if (!outermost || !may_defer || is_late || nicety_shared->measured || nicety_is_shared())
        return 0;
    deferred++;
    nicety_count_look();
    return 1;
}

int nicety_defers(void) {
    return !seen.looks && defer();
}

int nicety_defers_more(void) {
    return deferred && seen.looks && deferred < NICETY_MOST_DEFERRED && defer();
}

int nicety_take_deferred(void) {
    int looks = deferred;
    deferred = 0;
    return looks;
}

void nicety_read_late(void) {
    is_late = 1;
}

void nicety_looked(int found) {
    seen.looks = found ? 0 : seen.looks + 1;
    seen.calls = nicety_calls();
    seen.clock_reads = nicety_slot ? nicety_slot->clock_reads : 0;
    seen.outside = nicety_uses_of_files();
}

/* All arguments of MPI's functions are numbers and addresses, and each argument takes a register or a place of the
 * stack. No function has more than 12 arguments. A function with fewer arguments also gets the further words, but
 * ignores them. */
typedef uintptr_t word;
#define WORDS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
typedef int mpi_function(WORDS);

static _Thread_local int probes;

int nicety_probes(void) {
    return probes && !nicety_is_shared();
}

const void *nicety_begin_wait(const void *frame, int looks) {
    const char *before = outermost;
    if (!before) {
        outermost = frame;
        kind = looks;
        may_defer = 0;
        seen.looks = 0;
    }
    return before;
}

void nicety_end_wait(const void *before) {
    if (!before)
        nicety_catch_up();
    outermost = before;
}

static int waits(mpi_function *own, int defers, WORDS) {
    const void *before = nicety_begin_wait(__builtin_frame_address(0), LOOKS_WAIT);
    may_defer |= !before && defers;
    int code = own(a, b, c, d, e, f, g, h, i, j, k, l);
    nicety_end_wait(before);
    return code;
}

#define WAITS_AND(defers, name)                                                                                        \
    EXPORT int MPI_##name(WORDS);                                                                                      \
    int MPI_##name(WORDS) {                                                                                            \
        static mpi_function *own;                                                                                      \
        if (!own)                                                                                                      \
            *(void **)&own = nicety_mpi_behind("MPI_" #name, (void *)MPI_##name);                                      \
        return waits(own, defers, a, b, c, d, e, f, g, h, i, j, k, l);                                                 \
    }
/* A call that returns only with its result. */
#define WAITS(name) WAITS_AND(1, name)
/* A call that may return behind any look, that looks in turn for several requests, or that also waits for memory. */
#define WAITS_OR_LOOKS(name) WAITS_AND(0, name)
/* Each look of these calls is a look at the card. */
#define PROBES(name)                                                                                                   \
    EXPORT int MPI_##name(WORDS);                                                                                      \
    int MPI_##name(WORDS) {                                                                                            \
        static mpi_function *own;                                                                                      \
        if (!own)                                                                                                      \
            *(void **)&own = nicety_mpi_behind("MPI_" #name, (void *)MPI_##name);                                      \
        int before = probes;                                                                                           \
        probes = 1;                                                                                                    \
        int code = own(a, b, c, d, e, f, g, h, i, j, k, l);                                                            \
        probes = before;                                                                                               \
        return code;                                                                                                   \
    }
/* A function, and its form with long counts. */
#define BOTH(name) WAITS(name) WAITS(name##_c)

BOTH(Send)
BOTH(Ssend)
BOTH(Rsend)
WAITS_OR_LOOKS(Bsend)
WAITS_OR_LOOKS(Bsend_c)
BOTH(Recv)
BOTH(Mrecv)
BOTH(Sendrecv)
BOTH(Sendrecv_replace)
WAITS(Wait)
WAITS(Waitall)
WAITS_OR_LOOKS(Waitany)
WAITS_OR_LOOKS(Waitsome)

PROBES(Probe)
PROBES(Mprobe)

WAITS(Barrier)
BOTH(Bcast)
BOTH(Gather)
BOTH(Gatherv)
BOTH(Scatter)
BOTH(Scatterv)
BOTH(Allgather)
BOTH(Allgatherv)
BOTH(Alltoall)
BOTH(Alltoallv)
BOTH(Alltoallw)
BOTH(Reduce)
BOTH(Allreduce)
BOTH(Reduce_scatter)
BOTH(Reduce_scatter_block)
BOTH(Scan)
BOTH(Exscan)
BOTH(Neighbor_allgather)
BOTH(Neighbor_allgatherv)
BOTH(Neighbor_alltoall)
BOTH(Neighbor_alltoallv)
BOTH(Neighbor_alltoallw)

WAITS_OR_LOOKS(Comm_create)
WAITS_OR_LOOKS(Comm_create_group)
WAITS_OR_LOOKS(Comm_disconnect)
WAITS_OR_LOOKS(Comm_dup)
WAITS_OR_LOOKS(Comm_dup_with_info)
WAITS_OR_LOOKS(Comm_free)
WAITS_OR_LOOKS(Comm_split)
WAITS_OR_LOOKS(Comm_split_type)
WAITS_OR_LOOKS(Intercomm_create)
WAITS_OR_LOOKS(Intercomm_merge)
WAITS_OR_LOOKS(Cart_create)
WAITS_OR_LOOKS(Cart_sub)
WAITS_OR_LOOKS(Graph_create)
WAITS_OR_LOOKS(Dist_graph_create)
WAITS_OR_LOOKS(Dist_graph_create_adjacent)

WAITS_OR_LOOKS(Win_create)
WAITS_OR_LOOKS(Win_create_c)
WAITS_OR_LOOKS(Win_allocate)
WAITS_OR_LOOKS(Win_allocate_c)
WAITS_OR_LOOKS(Win_create_dynamic)
WAITS_OR_LOOKS(Win_free)
WAITS_OR_LOOKS(Win_fence)
WAITS_OR_LOOKS(Win_start)
WAITS_OR_LOOKS(Win_post)
WAITS_OR_LOOKS(Win_complete)
WAITS_OR_LOOKS(Win_wait)
WAITS_OR_LOOKS(Win_lock)
WAITS_OR_LOOKS(Win_lock_all)
WAITS_OR_LOOKS(Win_unlock)
WAITS_OR_LOOKS(Win_unlock_all)
WAITS_OR_LOOKS(Win_flush)
WAITS_OR_LOOKS(Win_flush_all)
WAITS_OR_LOOKS(Win_flush_local)
WAITS_OR_LOOKS(Win_flush_local_all)
