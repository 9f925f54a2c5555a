/* nicety_dpa.h: the queues of a thread on a datapath accelerator, for frame handlers.
 *
 * Each hardware thread has a receive queue, a send queue and a completion queue, and polls the latter. The card runs a
 * frame handler once for each completion. The functions here do what a thread's loop does with its queues, in the
 * handler's own memory. So their loads and stores use the caches, and their instructions take cycles.
 *
 *     __handler int frame_handler(const frame_t *completion, void *state) {
 *         const dpa_thread_t thread = dpa_begin();
 *         dpa_packet_t packet = dpa_receive(thread, completion);
 *         ...
 *         dpa_send(thread, packet);
 *         return dpa_end(thread, FRAME_WIRE);
 *     }
 *
 * `completion` is the completion entry: the card writes it before the handler runs. Entries of queues are in network
 * order, as the hardware has them.
 */
#ifndef NICETY_DPA_H
#define NICETY_DPA_H

#include <frame.h>

#ifndef DPA_THREADS
#define DPA_THREADS 256       /* threads with queues */
#endif
#ifndef DPA_RING
#define DPA_RING 128          /* entries of a queue: a power of two */
#endif

/* A pointer of a queue's entry to a buffer. */
typedef struct {
    uint32_t length, key;
    uint64_t address;
} dpa_pointer_t;

/* An entry of a send queue: segments for control, Ethernet and the data, and room. */
typedef struct {
    dpa_pointer_t control, ethernet, data, unused;
} dpa_send_entry_t;

/* The queues of a thread, and the records through which the hardware learns of their progress. */
typedef struct {
    uint32_t received, sent;
    uint64_t unused[7];
    volatile uint32_t receive_record, completion_record;
    uint64_t unused_records[7];
    volatile uint32_t doorbell;
    uint64_t unused_doorbell[7];
    volatile dpa_pointer_t receive_ring[DPA_RING];
    volatile dpa_send_entry_t send_ring[DPA_RING];
} __attribute__((aligned(64))) dpa_queues_t;

static dpa_queues_t dpa_queues[DPA_THREADS] __attribute__((unused));

/* A thread's queues. */
typedef dpa_queues_t *dpa_thread_t;

/* A received packet. */
typedef struct {
    uint8_t *data;
    uint32_t length;
} dpa_packet_t;

/* Returns the queues of the thread that runs this handler. */
NICETY_INLINE dpa_thread_t dpa_begin(void) {
    return &dpa_queues[PtlHandlerHPU()];
}

/* Returns the packet of a completion: its entry of the receive queue has the buffer. */
NICETY_INLINE dpa_packet_t dpa_receive(dpa_thread_t thread, const frame_t *completion) {
    const uint64_t offset = __builtin_bswap64(thread->receive_ring[thread->received & (DPA_RING - 1)].address);
    return (dpa_packet_t){completion->data + offset, completion->length};
}

/* Makes the cores' changed lines visible to the card. */
NICETY_INLINE void dpa_write_back(void) {
    __asm__ volatile("fence rw, rw" ::: "memory");
}

/* Writes the packet's entry of the send queue, and rings the doorbell. FRAME_WIRE then sends the frame. */
NICETY_INLINE void dpa_send(dpa_thread_t thread, dpa_packet_t packet) {
    volatile dpa_pointer_t *const data = &thread->send_ring[thread->sent++ & (DPA_RING - 1)].data;
    data->length = __builtin_bswap32(packet.length);
    data->address = __builtin_bswap64((uintptr_t)packet.data);
    dpa_write_back();
    thread->doorbell = __builtin_bswap32(thread->sent);
}

/* Gives the packet's entries of the receive queue and of the completion queue back. Returns `destination`. */
NICETY_INLINE int dpa_end(dpa_thread_t thread, int destination) {
    const uint32_t received = ++thread->received;
    thread->receive_record = __builtin_bswap32(received);
    thread->completion_record = __builtin_bswap32(received);
    return destination;
}

/* Swaps the addresses of Ethernet with two loads and two stores of 8 bytes. */
NICETY_INLINE void dpa_reflect(uint8_t *data) {
    uint64_t first, second;
    __builtin_memcpy(&first, data, 8);
    __builtin_memcpy(&second, data + 6, 8);
    const uint64_t address = (1ull << 48) - 1;
    const uint64_t behind = (first & address) | (second & ~address);
    __builtin_memcpy(data, &second, 8);
    __builtin_memcpy(data + 6, &behind, 8);
}

#endif
