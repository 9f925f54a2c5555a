/* What a process and the simulator share: a page for all that processes read, one with the bell that they ring, and four pages for each
 * rank: its slot, and from the second page on its ring. A process maps no pages of others, so that a stray store of it meets its own alone,
 * which the simulator notices.
 *
 * A process runs until it calls: it fills in its call, sets its turn to TURN_CALL, rings the bell, and sleeps until the
 * simulator has filled in the reply and set the turn back to TURN_RUN. So time stands still while a process runs. One that is
 * about to wait for something else than the simulated network, such as its launcher, sets TURN_OUTSIDE, and calls CALL_BACK
 * when it is back.
 *
 * Calls that have no reply, such as CALL_SEND, CALL_CANCEL and CALL_WRITE, may be posted: written to the ring's place posted % NICETY_POSTS, with posted one
 * more behind that. The simulator carries them out, in their order and at their time, before the process's next call, or when it is
 * outside, and says by taken how many it has. Before a process reads a clock it has them carried out, by CALL_POSTED, since some take
 * time. A full ring is emptied in the same way. What the address of a post names stays as it is until it is taken; the place of a
 * post has room for a few bytes, which may be named as well.
 *
 * With a reply the simulator says until when nothing can come for the process, and how many looks at its queue it may count itself. Where
 * nothing is posted, a look that ends until then finds nothing, so the process counts it, and makes no call.
 *
 * src/protocol.rs has the same layout. */

#ifndef NICETY_PROTOCOL_H
#define NICETY_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

#define NICETY_MAGIC 0x5845795465634eULL
#define NICETY_VERSION 6
#define NICETY_PAGE 4096
/* Where the bell is, and where the first rank's pages begin. */
#define NICETY_BELL NICETY_PAGE
#define NICETY_SLOTS (2 * NICETY_PAGE)
/* Of a rank. */
#define NICETY_SLOT_BYTES (4 * NICETY_PAGE)
#define NICETY_POSTS 64
#define NICETY_POST_BYTES 64
#define NICETY_MOST_COMPLETIONS 24
#define NICETY_SHARED 8
#define NICETY_SHARED_BYTES 96
#define NICETY_LIBRARY_BYTES 192
/* How a file begins that MPICH's launcher makes for its processes, and leaves where they abort. */
#define NICETY_LAUNCHER_FILE "/tmp/hydra_hwloc_xmlfile_"
/* In place of a rank: any. */
#define NICETY_ANY UINT64_MAX

/* TURN_ENDS is outside until all others end, too. The simulator makes TURN_SLEEP of TURN_CALL where the call waits and others run, so that
 * the process stops looking for its reply and sleeps. */
enum { TURN_RUN = 0, TURN_CALL = 1, TURN_OUTSIDE = 2, TURN_ENDS = 3, TURN_SLEEP = 4 };

enum {
    CALL_SEND = 1, /* address, bytes, rank, tag, data, context */
    CALL_RECV,     /* address, bytes, rank or any, tag, ignored bits, context */
    CALL_POLL,     /* most completions, whether the process looks until it finds something, and does nothing else */
    CALL_WAIT,     /* most completions, ps or any */
    CALL_PEEK,     /* address, bytes, rank or any, tag, ignored bits, context */
    CALL_CANCEL,   /* context */
    CALL_SLEEP,    /* ps */
    CALL_BACK,
    CALL_END,
    CALL_POSTED, /* returns when what is posted has been carried out */
    CALL_WRITE,  /* address, bytes, rank, key, remote address, data, context */
    CALL_READ,   /* as a write, without data */
    CALL_ATOMIC, /* as a read; kind, type and operator, addresses of the result and of what is compared */
    CALL_REGISTER, /* address, bytes, rights, key, number: 0, or a negative error */
    CALL_DEREGISTER, /* number */
    CALL_COUNT, /* kinds, a sum of successes that is reached, one of failures that is passed, ps or any: waits for either */
};

/* What counters count, as bits of kinds. */
enum { KIND_SEND, KIND_RECV, KIND_READ, KIND_WRITE, KIND_REMOTE_READ, KIND_REMOTE_WRITE, NICETY_KINDS };

/* Rights of others to a region. */
enum { RIGHT_READ = 1, RIGHT_WRITE = 2 };

/* What the card does: reads and writes of registered memory, atomic operations on it. Its regions are named by addresses of the
 * process, and by keys that the simulator gives; or by offsets, and keys of the program's choice. */
enum { CARD_RMA = 1, CARD_ATOMIC = 2, CARD_ADDRESSES = 4, CARD_EVENTS = 8 };

/* Why an access was refused: in its completion these and NICETY_REASONS. */
enum { REASON_BOUNDS, REASON_RIGHTS, REASON_OTHER, NICETY_REASONS = 1024 };

/* Kinds of atomic operations: with no result, with the previous contents, and with a comparison as well. */
enum { ATOMIC_PLAIN, ATOMIC_FETCH, ATOMIC_COMPARE };

enum {
    FLAG_UNTAGGED = 1,   /* of a send or receive */
    FLAG_COMPLETION = 2, /* tells of its end */
    FLAG_DATA = 4,       /* a send with data for the receiver's completion */
    FLAG_MULTI = 8,      /* a receive for many messages; its rank is then any */
    FLAG_INJECT = 16,    /* a send whose end nobody wants to know */
    FLAG_CLAIM = 32,     /* of a peek: what is found is kept for its context; of a receive: what was kept is taken */
    FLAG_DISCARD = 64,   /* of a peek, or a receive of what was kept: it is gone then */
    FLAG_EARLY = 128,    /* a write that has ended when its bytes may be written over */
    FLAG_EVENTS = 256,   /* a region of which each access is counted */
    FLAG_COPY = 512,     /* an access whose bytes may be written over at once */
    FLAG_PARTS = 1024,   /* a read whose address and bytes are those of a list of places, and their number */
    FLAG_REPEATS = 2048, /* of a peek: if it finds nothing, another one follows */
};

/* How a process has ended, as far as it says so itself: nothing of a signal. END_ERROR is MPI's own, after one that the program
 * does not handle. */
enum { END_UNKNOWN, END_ABORT, END_EXIT, END_ERROR };

/* MPIs. */
enum { MPI_UNKNOWN, MPI_OF_MPICH, MPI_OF_OPENMPI };

/* Flags of completions. */
enum {
    DONE_RECV = 1,
    DONE_DATA = 2,
    DONE_USED_UP = 4,
    DONE_UNTAGGED = 8,
    DONE_READ = 16, /* of registered memory, as the next three */
    DONE_WRITE = 32,
    DONE_ATOMIC = 64,
    DONE_REMOTE = 128, /* a write by another process */
};

struct nicety_completion {
    uint64_t context;
    uint32_t flags;
    int32_t error; /* of errno.h or libfabric; 0 if none */
    uint64_t bytes;
    uint64_t address;
    uint64_t data;
    uint64_t tag;
    uint64_t source; /* the rank, of a receive */
    uint64_t cut;    /* bytes that did not fit; of an access to registered memory that failed, the card's reason */
};

struct nicety_header {
    uint64_t magic;
    uint32_t version;
    uint32_t ranks;
    _Atomic uint32_t ended; /* how many ranks have closed the network */
    _Atomic uint32_t spins; /* looks at a turn before it is slept on */
    uint32_t simulator; /* its process id */
    uint32_t measured; /* whether the time of CPUs counts */
    uint64_t clock_cost_ps;
    uint64_t epoch_ns; /* the real-time clock at time zero */
    double scale; /* of the time of CPUs */
    uint64_t look_cost_ps; /* of a look at an empty queue */
    uint32_t tag_bits; /* the bits of a tag that are the program's */
    uint32_t card; /* what it does */
    uint32_t atomic_bytes, fetch_bytes; /* the most of an atomic operation, and of one with a result */
    uint32_t launcher; /* whose it is, or MPI_UNKNOWN */
};

/* What has ended, by kind. */
struct nicety_counts {
    uint64_t done[NICETY_KINDS];
    uint64_t failed[NICETY_KINDS];
};

struct nicety_post {
    uint32_t call;
    uint32_t flags;
    uint64_t spent_ps; /* as in the slot, when it was posted */
    uint64_t args[14];
    unsigned char bytes[NICETY_POST_BYTES];
};

struct nicety_slot {
    _Atomic uint32_t turn;
    _Atomic uint32_t pid; /* of the process that has it; 0 if none */
    uint64_t now_ps; /* when the last reply was given */
    uint64_t spent_ps; /* by the process since then */
    uint64_t clock_reads;
    uint32_t call;
    uint32_t flags;
    uint64_t args[8];
    int64_t result;
    uint32_t completions;
    _Atomic uint32_t ended; /* the process has closed its endpoint */
    struct nicety_completion completion[NICETY_MOST_COMPLETIONS];
    _Atomic uint32_t posted; /* posts that were written, modulo 2^32 */
    _Atomic uint32_t taken;  /* those of them that were carried out */
    uint64_t quiet_ps; /* what comes comes at this time or later */
    uint32_t looks_left; /* looks that may be counted */
    uint32_t looks; /* those that the process has counted since the last reply */
    struct nicety_counts counts; /* when the last reply was given */
    _Atomic uint32_t end; /* how the process has ended, or without one that takes part the first with the library, */
    int32_t end_code;     /* and with which status, or code of MPI_Abort */
    _Atomic uint32_t fork; /* a fork of the process that has asked for the network; 0 if none */
    _Atomic uint32_t loaded; /* the first process of the rank with the library, whether it takes part or not; 0 if none */
    _Atomic uint32_t watched; /* that one, once the simulator looks after it */
    char shared[NICETY_SHARED][NICETY_SHARED_BYTES]; /* names of shared memory that the process has made and not removed, and of its launcher's file; the first byte is last */
    _Atomic uint32_t service; /* the port that the process has named as its own; 0 if none */
    _Atomic uint32_t names;   /* how often these have changed */
    _Atomic uint32_t library; /* which MPI the process has started, where it is not its launcher's */
    uint64_t guard;           /* NICETY_MAGIC, as long as nothing has written over it */
    char library_path[NICETY_LIBRARY_BYTES];
    uint32_t sending, receiving; /* operations that have not ended: sends and accesses, and receives, with those posted since the reply */
};

_Static_assert(sizeof(struct nicety_completion) == 64, "as in protocol.rs");
_Static_assert(sizeof(struct nicety_header) <= NICETY_PAGE, "one page");
_Static_assert(sizeof(struct nicety_slot) <= NICETY_PAGE, "one page");
_Static_assert(sizeof(struct nicety_post) * NICETY_POSTS == NICETY_SLOT_BYTES - NICETY_PAGE, "all others");

#endif
