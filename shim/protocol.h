/* The memory that a process and the simulator share. It has a page that all processes read, a page with the bell that
 * they ring, and four pages for each rank. A rank's first page is its slot, and the other pages are its ring. A process
 * maps no pages of other ranks. So a stray store hits only the process's own pages, and the simulator detects such a
 * store.
 *
 * A process runs until it makes a call. It then writes the call, sets its turn to TURN_CALL, and rings the bell. It
 * waits until the simulator has written the reply and set the turn to TURN_RUN. So time stands still while a process
 * runs. Before a wait outside the simulated network, such as for its launcher, a process sets TURN_OUTSIDE. After the
 * wait, it calls CALL_BACK, or sets TURN_RUN if no process communicates yet.
 *
 * Calls without a reply, such as CALL_SEND, CALL_CANCEL and CALL_WRITE, may be posted. The process writes a post to
 * place `posted % NICETY_POSTS` of the ring, and increments `posted`. The simulator carries out the posts, in order and
 * at their times, before the process's next call, or when the process is outside. The simulator counts these posts in
 * `taken`. Some posts take time. So a process has its posts carried out by CALL_POSTED before it reads a clock, and
 * when the ring is full. The memory at the address of a post must not change until the post is taken. The place of a
 * post has room for a few bytes, and the address may point to these.
 *
 * A reply has a time before which nothing can arrive for the process, and the number of looks that the process may
 * count itself. Without posted calls, a look that ends before this time finds nothing. So the process counts the look,
 * and makes no call.
 *
 * crates/exec/src/protocol.rs has the same layout. */

#ifndef NICETY_PROTOCOL_H
#define NICETY_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

#define NICETY_MAGIC 0x5845795465634eULL
#define NICETY_VERSION 8
#define NICETY_PAGE 4096
/* Offsets of the bell and of the first rank's pages. */
#define NICETY_BELL NICETY_PAGE
#define NICETY_SLOTS (2 * NICETY_PAGE)
/* Bytes of a rank's pages. */
#define NICETY_SLOT_BYTES (4 * NICETY_PAGE)
#define NICETY_POSTS 64
#define NICETY_POST_BYTES 64
#define NICETY_MOST_COMPLETIONS 24
/* The maximum number of looks that a process defers. */
#define NICETY_MOST_DEFERRED 3
#define NICETY_SHARED 8
#define NICETY_SHARED_BYTES 96
#define NICETY_LIBRARY_BYTES 192
/* Prefix of a file that MPICH's launcher makes for its processes, and leaves if they abort. */
#define NICETY_LAUNCHER_FILE "/tmp/hydra_hwloc_xmlfile_"
/* The value for any rank, or for an unlimited time. */
#define NICETY_ANY UINT64_MAX

/* With TURN_ENDS, the process is outside until all other processes end, too. TURN_SLEEP stands for a call with a
 * process that sleeps, and does not spin, until the reply. The process sets it before it sleeps. The simulator sets it
 * if other processes run meanwhile. The simulator wakes a process only with TURN_SLEEP. */
enum { TURN_RUN = 0, TURN_CALL = 1, TURN_OUTSIDE = 2, TURN_ENDS = 3, TURN_SLEEP = 4 };

enum {
    CALL_SEND = 1, /* address, bytes, rank, tag, data, context. */
    CALL_RECV,     /* address, bytes, rank or any, tag, ignored bits, context. */
    CALL_POLL,     /* most completions, the kind of the look, deferred looks. */
    CALL_WAIT,     /* most completions, ps or any. */
    CALL_PEEK,     /* address, bytes, rank or any, tag, ignored bits, context. */
    CALL_CANCEL,   /* context. */
    CALL_SLEEP,    /* ps. */
    CALL_BACK,
    CALL_END,
    CALL_POSTED, /* returns when posted calls have been carried out. */
    CALL_WRITE,  /* address, bytes, rank, key, remote address, data, context. */
    CALL_READ,   /* as a write, without data. */
    CALL_ATOMIC, /* as a read; kind, type and operator, addresses of the result and of the operand. */
    CALL_REGISTER, /* address, bytes, rights, key, number. The result is 0 or a negative error. */
    CALL_DEREGISTER, /* number. */
    CALL_COUNT, /* kinds, a sum of successes to reach, a sum of failures to exceed, ps or any, the kind of a look. Waits for either sum. */
};

/* The kinds of looks. With LOOKS_WAIT, the process is in a call that waits, and with LOOKS_START, in the start or end of
 * MPI. It looks until it finds something, and does nothing else. With LOOKS_MAY_WAIT, the process is in a call that
 * waits, but its next step is unknown. */
enum { LOOKS_ONCE = 0, LOOKS_WAIT = 1, LOOKS_START = 2, LOOKS_MAY_WAIT = 3 };

/* The operations that counters count, as bits of kinds. */
enum { KIND_SEND, KIND_RECV, KIND_READ, KIND_WRITE, KIND_REMOTE_READ, KIND_REMOTE_WRITE, NICETY_KINDS };

/* Rights of others to a region. */
enum { RIGHT_READ = 1, RIGHT_WRITE = 2 };

/* The card's abilities. These are reads and writes of registered memory, atomic operations on it, addresses, and
 * events. With CARD_ADDRESSES, accesses have addresses of the process, and keys are the simulator's. Without it,
 * accesses have offsets, and the program chooses the keys. */
enum { CARD_RMA = 1, CARD_ATOMIC = 2, CARD_ADDRESSES = 4, CARD_EVENTS = 8 };

/* The reason for refusing an access. In the access's completion, NICETY_REASONS is added to the reason. */
enum { REASON_BOUNDS, REASON_RIGHTS, REASON_OTHER, NICETY_REASONS = 1024 };

/* Kinds of atomic operations: without a result, with the previous contents as the result, and with such a result and a
 * comparison. */
enum { ATOMIC_PLAIN, ATOMIC_FETCH, ATOMIC_COMPARE };

enum {
    FLAG_UNTAGGED = 1,   /* a send or receive without a tag. */
    FLAG_COMPLETION = 2, /* the operation has a completion. */
    FLAG_DATA = 4,       /* a send with data for the receiver's completion. */
    FLAG_MULTI = 8,      /* a receive for many messages, from any rank. */
    FLAG_INJECT = 16,    /* a send without a completion. */
    FLAG_CLAIM = 32,     /* a peek that keeps its message for the context, or a receive that takes the kept message. */
    FLAG_DISCARD = 64,   /* a peek, or a receive of a kept message, that discards the message. */
    FLAG_EARLY = 128,    /* a write that ends when the program may overwrite its bytes. */
    FLAG_EVENTS = 256,   /* a region with a count of each access. */
    FLAG_COPY = 512,     /* an access with bytes that the program may overwrite at once. */
    FLAG_PARTS = 1024,   /* a read into a list of places. The arguments are the list's address and the number of places. */
    FLAG_REPEATS = 2048, /* a peek that is followed by another one if it finds nothing. */
    FLAG_INLINE = 4096,  /* a post with its bytes in its place of the ring. */
};

/* The end of a process, as the process reports it. A process does not report a signal. END_ERROR is the end by MPI
 * itself, after an error that the program does not handle. */
enum { END_UNKNOWN, END_ABORT, END_EXIT, END_ERROR };

/* The MPI of a launcher or a process. */
enum { MPI_UNKNOWN, MPI_OF_MPICH, MPI_OF_OPENMPI };

/* Flags of completions. */
enum {
    DONE_RECV = 1,
    DONE_DATA = 2,
    DONE_USED_UP = 4,
    DONE_UNTAGGED = 8,
    DONE_READ = 16, /* an operation on registered memory, as the next three. */
    DONE_WRITE = 32,
    DONE_ATOMIC = 64,
    DONE_REMOTE = 128, /* a write by another process. */
};

struct nicety_completion {
    uint64_t context;
    uint32_t flags;
    int32_t error; /* a number of errno.h or libfabric, or 0 without an error. */
    uint64_t bytes;
    uint64_t address;
    uint64_t data;
    uint64_t tag;
    uint64_t source; /* the source rank of a receive. */
    uint64_t cut;    /* bytes that did not fit. In a failed access to registered memory, the card's reason. */
};

struct nicety_header {
    uint64_t magic;
    uint32_t version;
    uint32_t ranks;
    _Atomic uint32_t ended; /* number of ranks that have closed the network. */
    _Atomic uint32_t spins; /* number of spins for a turn before a process sleeps. */
    uint32_t simulator; /* the simulator's process id. */
    uint32_t measured; /* whether CPU time counts. */
    uint64_t clock_cost_ps;
    uint64_t epoch_ns; /* the real-time clock at time zero. */
    double scale; /* virtual time per CPU time. */
    uint64_t look_cost_ps; /* the cost of a look at an empty queue. */
    uint32_t tag_bits; /* the number of bits of a tag for programs. */
    uint32_t card; /* the card's abilities. */
    uint32_t atomic_bytes, fetch_bytes; /* the maximum bytes of an atomic operation, and of one with a result. */
    uint32_t launcher; /* the launcher's MPI, or MPI_UNKNOWN. */
    _Atomic uint32_t begun; /* whether processes communicate, because all have started. */
    _Atomic uint32_t asleep; /* whether the simulator sleeps until the bell rings. */
};

/* Numbers of ended operations, by kind. */
struct nicety_counts {
    uint64_t done[NICETY_KINDS];
    uint64_t failed[NICETY_KINDS];
};

struct nicety_post {
    uint32_t call;
    uint32_t flags;
    uint64_t spent_ps; /* spent_ps of the slot when the call was posted. */
    uint64_t args[14];
    unsigned char bytes[NICETY_POST_BYTES];
};

struct nicety_slot {
    _Atomic uint32_t turn;
    _Atomic uint32_t pid; /* the process of the rank that takes part, or 0. */
    uint64_t now_ps; /* time of the last reply. */
    uint64_t spent_ps; /* time that the process has spent since then. */
    uint64_t clock_reads;
    uint32_t call;
    uint32_t flags;
    uint64_t args[8];
    int64_t result;
    uint32_t completions;
    _Atomic uint32_t ended; /* the process has closed its endpoint. */
    struct nicety_completion completion[NICETY_MOST_COMPLETIONS];
    _Atomic uint32_t posted; /* posts that were written, modulo 2^32. */
    _Atomic uint32_t taken;  /* posts that were carried out, modulo 2^32. */
    uint64_t quiet_ps; /* nothing arrives before this time. */
    uint32_t looks_left; /* number of looks that the process may count itself. */
    uint32_t looks; /* number of looks that the process has counted since the last reply. */
    struct nicety_counts counts; /* the counts at the last reply. */
    _Atomic uint32_t end; /* end of the process, or before one takes part of the first with the library, */
    int32_t end_code;     /* and its status, or code of MPI_Abort. */
    _Atomic uint32_t fork; /* a forked process that has asked for the network, or 0. */
    _Atomic uint32_t loaded; /* the first process of the rank with the library, or 0. It need not take part. */
    _Atomic uint32_t watched; /* the value of loaded, once the simulator watches this process. */
    char shared[NICETY_SHARED][NICETY_SHARED_BYTES]; /* names of shared memory and the launcher's file. The first byte is written last. */
    _Atomic uint32_t service; /* the port that the process has named as its own, or 0. */
    _Atomic uint32_t names;   /* number of changes of shared. */
    _Atomic uint32_t library; /* the MPI that the process has started, if it is not the launcher's MPI. */
    uint64_t guard;           /* NICETY_MAGIC, unless it was overwritten. */
    char library_path[NICETY_LIBRARY_BYTES];
    uint32_t looks_of_waits; /* number of `looks` in calls that wait. */
    uint32_t sending, receiving; /* operations that have not ended: sends and accesses, and receives, with those posted since the reply. */
};

_Static_assert(sizeof(struct nicety_completion) == 64, "as in protocol.rs");
_Static_assert(sizeof(struct nicety_header) <= NICETY_PAGE, "one page");
_Static_assert(sizeof(struct nicety_slot) <= NICETY_PAGE, "one page");
_Static_assert(sizeof(struct nicety_post) * NICETY_POSTS == NICETY_SLOT_BYTES - NICETY_PAGE, "all others");

#endif
