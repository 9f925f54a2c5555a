/* nfp.h: the interface of a process on a network flow processor to its card.
 *
 * A process is a function that runs on one context of a microengine until it returns. It may never return:
 *
 *     __process uint32_t worker(uint32_t argument, ...);
 *
 * A microengine runs the processes of its contexts in turn. A process gives up the core when it loads from or stores to
 * a memory outside the microengine, waits for a signal or yields. Otherwise the process is not preempted. So processes
 * of a microengine may change shared variables without locks, as long as no step in between gives up the core.
 *
 * Variables and stacks are in the microengine's local memory, a few kilobytes that the contexts share. There is one
 * copy of a global variable per microengine. Code and constants are in the code store. The memories outside are ranges
 * of addresses. Processes access them through `volatile` pointers, because other processes change the contents:
 *
 *     volatile uint32_t *counters = nfp_cls(64);
 *     nfp_fetch_add(&counters[3], 1);
 *
 * A load or store is one reference. A block move (nfp_read, nfp_write) is also one reference. An invalid access stops
 * the process, and the line of the access is reported.
 */
#ifndef NFP_H
#define NFP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define __process __attribute__((used, noinline))
#define NFP_INLINE static inline __attribute__((always_inline, unused))

/* Start addresses of the memories, the nearest first. A card's spec has their sizes. */
#define NFP_CLS 0x20000000u   /* cluster local scratch, one per island of microengines */
#define NFP_CTM 0x30000000u   /* cluster target memory, one per island */
#define NFP_IMEM 0x40000000u  /* internal memory */
#define NFP_EMEM 0x80000000u  /* external memory */

/* Pointers into the memories. */
#define nfp_cls(offset) ((volatile void *)(NFP_CLS + (offset)))
#define nfp_ctm(offset) ((volatile void *)(NFP_CTM + (offset)))
#define nfp_imem(offset) ((volatile void *)(NFP_IMEM + (offset)))
#define nfp_emem(offset) ((volatile void *)(NFP_EMEM + (offset)))

/* Maximum bytes that nfp_read and nfp_write move. */
#define NFP_TRANSFER 64u

/* Calls of the core. The number is in a7, arguments are in the registers from a0 on, and the result is in a0. */
enum {
    NFP_CALL_READ = 0x200,
    NFP_CALL_WRITE = 0x201,
    NFP_CALL_CRC32 = 0x210,
    NFP_CALL_WAIT_ALL = 0x220,
    NFP_CALL_WAIT_ANY = 0x221,
    NFP_CALL_SIGNAL = 0x222,
    NFP_CALL_YIELD = 0x230,
    NFP_CALL_CHANNEL_REGISTER = 0x300,
    NFP_CALL_CHANNEL_WRITE = 0x301,
    NFP_CALL_CHANNEL_READ = 0x302,
    NFP_CALL_CHANNEL_WRITE_IND = 0x303,
    NFP_CALL_CHANNEL_READ_IND = 0x304,
    NFP_CALL_CHANNEL_SELECT = 0x305,
    NFP_CALL_ETH_SEND = 0x310,
    NFP_CALL_ETH_RECEIVE = 0x311,
    NFP_CALL_ETH_MOVE = 0x312,
    NFP_CALL_NODE = 0x313,
    NFP_CALL_ETH_TYPE = 0x314,
    NFP_CALL_ETH_SEND_TO = 0x315,
    NFP_CALL_ETH_RECEIVE_FROM = 0x316,
    NFP_CALL_ETH_OPEN = 0x317
};

NFP_INLINE uint32_t nfp_call(uint32_t number, uint32_t x0, uint32_t x1, uint32_t x2) {
    register uint32_t a0 __asm__("a0") = x0;
    register uint32_t a1 __asm__("a1") = x1;
    register uint32_t a2 __asm__("a2") = x2;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

/* Copies `bytes` bytes, 1 to NFP_TRANSFER, from a memory to local memory, in one reference. */
NFP_INLINE void nfp_read(void *local, const volatile void *memory, uint32_t bytes) {
    nfp_call(NFP_CALL_READ, (uint32_t)(uintptr_t)local, (uint32_t)(uintptr_t)memory, bytes);
}

/* Copies `bytes` bytes, 1 to NFP_TRANSFER, from local memory to a memory, in one reference. */
NFP_INLINE void nfp_write(volatile void *memory, const void *local, uint32_t bytes) {
    nfp_call(NFP_CALL_WRITE, (uint32_t)(uintptr_t)memory, (uint32_t)(uintptr_t)local, bytes);
}

/* Atomic operations of the memories on a word. Each is one reference and returns the previous word. */
NFP_INLINE uint32_t nfp_fetch_add(volatile uint32_t *word, uint32_t value) {
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
/* Sets the bits that are set in `bits` (test and set). */
NFP_INLINE uint32_t nfp_fetch_set(volatile uint32_t *word, uint32_t bits) {
    return __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}
/* Clears the bits that are set in `bits`. */
NFP_INLINE uint32_t nfp_fetch_clear(volatile uint32_t *word, uint32_t bits) {
    return __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
}
NFP_INLINE uint32_t nfp_swap(volatile uint32_t *word, uint32_t value) {
    return __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
}
/* Sets the word to `value` if `value` is less. */
NFP_INLINE uint32_t nfp_fetch_min(volatile uint32_t *word, uint32_t value) {
    uint32_t before;
    __asm__ volatile("amominu.w %0, %2, (%1)" : "=r"(before) : "r"(word), "r"(value) : "memory");
    return before;
}

/* Continues a CRC-32 (of Ethernet and zlib) over the bytes of a word, lowest byte first. `crc` is 0 for the first word.
 * The core is busy meanwhile, so no other context runs. */
NFP_INLINE uint32_t nfp_crc32(uint32_t crc, uint32_t word) {
    register uint32_t a0 __asm__("a0") = crc;
    register uint32_t a1 __asm__("a1") = word;
    register uint32_t a7 __asm__("a7") = NFP_CALL_CRC32;
    __asm__("ecall" : "+r"(a0) : "r"(a1), "r"(a7));
    return a0;
}

/* Sends a signal to a context. Each context has sixteen signals, numbered from 0. An arrived signal stays until a wait
 * consumes it. A repeated arrival before the wait counts once. */
NFP_INLINE void nfp_signal(uint32_t microengine, uint32_t context, uint32_t signal) {
    nfp_call(NFP_CALL_SIGNAL, microengine, context, signal);
}
/* Waits until all signals of the set have arrived. Bit n is signal n. Consumes and returns these signals. */
NFP_INLINE uint32_t nfp_wait_all(uint32_t signals) { return nfp_call(NFP_CALL_WAIT_ALL, signals, 0, 0); }
/* Waits until at least one signal of the set has arrived. Consumes and returns the arrived signals. */
NFP_INLINE uint32_t nfp_wait_any(uint32_t signals) { return nfp_call(NFP_CALL_WAIT_ANY, signals, 0, 0); }

/* Lets the other ready contexts of the microengine run first. */
NFP_INLINE void nfp_yield(void) { nfp_call(NFP_CALL_YIELD, 0, 0, 0); }

/* Channels to the host. A process registers a target under an ID, and a thread of the host subscribes to the target.
 * This makes a channel, which carries messages in both directions. Messages are synchronous. A call ends when both ends
 * have called and the message is transferred. Both ends state the same size, and the same kind. Direct messages have 1
 * to 56 bytes, and go from or to local memory. Indirect messages go between a memory of the card (CTM, IMEM or EMEM)
 * and pages of the host.
 *
 * A call returns CHANNEL_OK, or one of the other codes. */
enum {
    CHANNEL_OK = 0,
    CHANNEL_SIZE_MISMATCH = -1,  /* the two ends named different sizes */
    CHANNEL_KIND_MISMATCH = -2,  /* one end made a direct call and the other an indirect one */
    CHANNEL_TIMED_OUT = -3,      /* the host made no call in time */
    CHANNEL_DMA_FAILED = -4,     /* a list of pages failed too often */
    CHANNEL_PIN_FAILED = -5,     /* the host could not pin its buffer */
    CHANNEL_CLOSED = -6,         /* the host closed the channel */
    CHANNEL_UNKNOWN_TARGET = -7, /* the target was not registered */
    CHANNEL_BUSY = -8,           /* the target is already registered, or another context is in a call on it */
    CHANNEL_TOO_LARGE = -9,      /* more than 56 bytes in a direct message, or more than the card's limit */
    CHANNEL_NO_BYTES = -10,      /* a message of no bytes */
    CHANNEL_BAD_ADDRESS = -11,   /* memory that is not in CTM, IMEM or EMEM */
    CHANNEL_NO_SPACE = -12,      /* no target is left */
    CHANNEL_BAD_GUARDS = -13     /* no guards, too many, or two of one target */
};

/* Maximum bytes of a direct message. */
#define CHANNEL_DIRECT 56u
/* A timeout that never ends. Other timeouts are in nanoseconds, and limit the wait for the host. */
#define CHANNEL_FOREVER 0xffffffffu

NFP_INLINE int32_t nfp_channel_call(uint32_t number, uint32_t target, uint32_t address, uint32_t bytes,
                                    uint32_t timeout_ns, uint32_t upper) {
    register uint32_t a0 __asm__("a0") = target;
    register uint32_t a1 __asm__("a1") = address;
    register uint32_t a2 __asm__("a2") = bytes;
    register uint32_t a3 __asm__("a3") = timeout_ns;
    register uint32_t a4 __asm__("a4") = upper;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a7) : "memory");
    return (int32_t)a0;
}

/* Registers this end of a channel as a target to which the host can subscribe. The function never blocks. */
NFP_INLINE int32_t channel_register(uint32_t target) {
    return nfp_channel_call(NFP_CALL_CHANNEL_REGISTER, target, 0, 0, 0, 0);
}

/* Write and read direct messages, with and without a timeout. */
NFP_INLINE int32_t channel_write_for(uint32_t target, const void *bytes, uint32_t size, uint32_t timeout_ns) {
    return nfp_channel_call(NFP_CALL_CHANNEL_WRITE, target, (uint32_t)(uintptr_t)bytes, size, timeout_ns, 0);
}
NFP_INLINE int32_t channel_write(uint32_t target, const void *bytes, uint32_t size) {
    return channel_write_for(target, bytes, size, CHANNEL_FOREVER);
}
NFP_INLINE int32_t channel_read_for(uint32_t target, void *bytes, uint32_t size, uint32_t timeout_ns) {
    return nfp_channel_call(NFP_CALL_CHANNEL_READ, target, (uint32_t)(uintptr_t)bytes, size, timeout_ns, 0);
}
NFP_INLINE int32_t channel_read(uint32_t target, void *bytes, uint32_t size) {
    return channel_read_for(target, bytes, size, CHANNEL_FOREVER);
}

/* Returns a 40-bit address for indirect messages. This is a pointer into CTM, IMEM or EMEM, with the island for CTM. A
 * plain pointer means the caller's own island. */
NFP_INLINE uint64_t nfp_address(uint32_t island, const volatile void *memory) {
    return (uint64_t)(island + 1) << 32 | (uint32_t)(uintptr_t)memory;
}

/* Write and read indirect messages, with and without a timeout. */
NFP_INLINE int32_t channel_write_ind_for(uint32_t target, uint64_t address, uint32_t size, uint32_t timeout_ns) {
    return nfp_channel_call(NFP_CALL_CHANNEL_WRITE_IND, target, (uint32_t)address, size, timeout_ns,
                            (uint32_t)(address >> 32));
}
NFP_INLINE int32_t channel_write_ind(uint32_t target, const volatile void *memory, uint32_t size) {
    return channel_write_ind_for(target, (uint32_t)(uintptr_t)memory, size, CHANNEL_FOREVER);
}
NFP_INLINE int32_t channel_read_ind_for(uint32_t target, uint64_t address, uint32_t size, uint32_t timeout_ns) {
    return nfp_channel_call(NFP_CALL_CHANNEL_READ_IND, target, (uint32_t)address, size, timeout_ns,
                            (uint32_t)(address >> 32));
}
NFP_INLINE int32_t channel_read_ind(uint32_t target, volatile void *memory, uint32_t size) {
    return channel_read_ind_for(target, (uint32_t)(uintptr_t)memory, size, CHANNEL_FOREVER);
}

/* An alternative of a selection: a message from this target. */
struct channel_guard {
    uint32_t target;
    volatile void *into; /* local memory, or a memory of the card for an indirect message */
    uint32_t size;
    uint32_t indirect; /* 0 or 1 */
    int32_t result;    /* result of the read, if this guard was chosen */
};

/* Reads a message from the first of up to 64 targets that has one. If several targets have a message, the order of the
 * guards decides. Returns the number of the chosen guard, with the result of the read in the guard's `result`. Returns
 * an error if no message was read. */
NFP_INLINE int32_t channel_select_for(struct channel_guard *guards, uint32_t count, uint32_t timeout_ns) {
    return nfp_channel_call(NFP_CALL_CHANNEL_SELECT, (uint32_t)(uintptr_t)guards, count, 0, timeout_ns, 0);
}
NFP_INLINE int32_t channel_select(struct channel_guard *guards, uint32_t count) {
    return channel_select_for(guards, count, CHANNEL_FOREVER);
}

/* The Ethernet port. A frame has 1 to 1500 bytes of payload. The first bytes, the head, come from or go to local
 * memory. The other bytes come from or go to a memory of the card (CTM, IMEM or EMEM). Calls return a negative error,
 * or their result.
 *
 * The second byte of a frame's destination address selects a queue of the receiving port. Each process names the queue
 * from which it takes frames. Several processes may take frames from one queue. Each frame goes to the first process
 * that waits. Queue 0, which nfp_eth_send and nfp_eth_receive use, is open from the beginning. Any other queue opens
 * when a process first receives from it, or when a process or the host opens it. A frame for an open queue waits until
 * a process takes it. The frame's sender waits if the port has no room for the frame. A frame for a queue that is not
 * open is dropped. The report of a run counts both kinds of frames. The last queue is for messages between hosts, and
 * user processes cannot receive from it.
 *
 * Received bytes are untrusted, so a process must check them. */
enum {
    NFP_ETH_NO_PEER = -1,     /* there is no such rank, or it is the own rank */
    NFP_ETH_TOO_LARGE = -2,   /* too many bytes for a frame or a head, or no bytes */
    NFP_ETH_BAD_ADDRESS = -3, /* memory that is not in CTM, IMEM or EMEM */
    NFP_ETH_NO_FRAME = -4,    /* this process has no frame */
    NFP_ETH_BAD_QUEUE = -5    /* there is no such queue, or this process may not use it */
};

/* Maximum bytes of a head, and of a whole frame. */
#define NFP_ETH_HEAD 64u
#define NFP_ETH_PAYLOAD 1500u
/* The source of a frame with a source address that belongs to no rank. */
#define NFP_ETH_STRANGER 0xffffffffu
/* Number of queues of a port, and the last queue, which is for messages between hosts. */
#define NFP_ETH_QUEUES 256u
#define NFP_ETH_MESSAGES 255u

NFP_INLINE int32_t nfp_eth_call(uint32_t number, uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, uint32_t x4,
                                uint32_t x5) {
    register uint32_t a0 __asm__("a0") = x0;
    register uint32_t a1 __asm__("a1") = x1;
    register uint32_t a2 __asm__("a2") = x2;
    register uint32_t a3 __asm__("a3") = x3;
    register uint32_t a4 __asm__("a4") = x4;
    register uint32_t a5 __asm__("a5") = x5;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
    return (int32_t)a0;
}

/* Sends a frame to a queue of a rank, or to the rank's queue 0. Returns 0 when the port has the frame and the process
 * may reuse the memory. */
NFP_INLINE int32_t nfp_eth_send_to(uint32_t rank, uint32_t queue, const void *head, uint32_t head_bytes,
                                   const volatile void *memory, uint32_t bytes) {
    return nfp_eth_call(NFP_CALL_ETH_SEND_TO, rank, (uint32_t)(uintptr_t)head, head_bytes, (uint32_t)(uintptr_t)memory,
                        bytes, queue);
}
NFP_INLINE int32_t nfp_eth_send(uint32_t rank, const void *head, uint32_t head_bytes, const volatile void *memory,
                                uint32_t bytes) {
    return nfp_channel_call(NFP_CALL_ETH_SEND, rank, (uint32_t)(uintptr_t)head, head_bytes,
                            (uint32_t)(uintptr_t)memory, bytes);
}

/* Opens a queue. From now on, frames of the queue wait for any process that receives from the queue. The function never
 * blocks, and returns 0. */
NFP_INLINE int32_t nfp_eth_open(uint32_t queue) {
    return nfp_channel_call(NFP_CALL_ETH_OPEN, queue, 0, 0, 0, 0);
}

/* Waits for a frame of a queue, or of queue 0. Returns the number of the frame's bytes. Stores the first bytes in
 * `head`, and the rank of the source in `source`. The frame stays with the process, in the packet buffer, until the
 * process gives up the frame, receives again or ends. */
NFP_INLINE int32_t nfp_eth_receive_from(uint32_t queue, void *head, uint32_t head_bytes, uint32_t *source) {
    return nfp_channel_call(NFP_CALL_ETH_RECEIVE_FROM, (uint32_t)(uintptr_t)head, head_bytes,
                            (uint32_t)(uintptr_t)source, queue, 0);
}
NFP_INLINE int32_t nfp_eth_receive(void *head, uint32_t head_bytes, uint32_t *source) {
    return nfp_channel_call(NFP_CALL_ETH_RECEIVE, (uint32_t)(uintptr_t)head, head_bytes, (uint32_t)(uintptr_t)source,
                            0, 0);
}

/* Returns the EtherType of the process's frame. Returns 0 if the frame has a length instead, like frames of
 * nfp_eth_send. */
NFP_INLINE uint32_t nfp_eth_type(void) { return (uint32_t)nfp_channel_call(NFP_CALL_ETH_TYPE, 0, 0, 0, 0, 0); }

/* Moves a part of the process's frame to a memory. Returns 0 when the bytes are there. A move of no bytes gives up the
 * frame. */
NFP_INLINE int32_t nfp_eth_move(volatile void *memory, uint32_t from, uint32_t bytes) {
    return nfp_channel_call(NFP_CALL_ETH_MOVE, (uint32_t)(uintptr_t)memory, from, bytes, 0, 0);
}

/* Returns this card's rank, and the number of ranks. */
NFP_INLINE uint32_t nfp_rank(void) { return (uint32_t)nfp_channel_call(NFP_CALL_NODE, 0, 0, 0, 0, 0); }
NFP_INLINE uint32_t nfp_ranks(void) { return (uint32_t)nfp_channel_call(NFP_CALL_NODE, 1, 0, 0, 0, 0); }

/* Return the place of the process. */
NFP_INLINE uint32_t nfp_hart(void) {
    uint32_t id;
    __asm__("csrr %0, mhartid" : "=r"(id));
    return id;
}
NFP_INLINE uint32_t nfp_microengine(void) { return nfp_hart() >> 3; }
NFP_INLINE uint32_t nfp_context(void) { return nfp_hart() & 7; }

/* Returns the low 32 bits of the number of cycles since the card started. */
NFP_INLINE uint32_t nfp_cycle(void) {
    uint32_t cycle;
    __asm__ volatile("csrr %0, cycle" : "=r"(cycle));
    return cycle;
}

/* Functions of the runtime for local memory. The runtime is linked with every program. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
