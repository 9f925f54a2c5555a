/* nicety.h: the interface of a packet handler to its card.
 *
 * Three optional functions handle a message with a match entry that names this program:
 *
 *     __handler int header_handler(const ptl_header_t h, void *state);
 *     __handler int payload_handler(const ptl_payload_t p, void *state);
 *     __handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);
 *
 * The header handler runs once, before any other handler of its message starts. Payload handlers run once per packet
 * with payload, concurrently and in any order. The completion handler runs once, after all other handlers and before
 * the host sees the completion. Without a payload handler, the data are deposited in host memory. A handler may end
 * while its DMA transfers are in flight. The completion handler and the completion wait for these transfers, and the
 * packet keeps its slot meanwhile. All handlers share `state`, which is in HPU memory. The interface is that of sPIN
 * (Hoefler et al., SC17). Sizes and offsets have 32 bits, and match bits and header data 64 bits. Pointers are as wide
 * as the processor's registers.
 */
#ifndef NICETY_H
#define NICETY_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define __handler __attribute__((used, noinline))

/* The maximum payload of a packet of the sPIN cards, in bytes. The header handler of a longer message decides whether
 * payload handlers run. For a card with another packet.payload, compile with -D PTL_MAX_SIZE=N. */
#ifndef PTL_MAX_SIZE
#define PTL_MAX_SIZE 4096u
#endif

typedef uint32_t ptl_size_t;         /* bytes */
typedef uint32_t ptl_process_t;      /* rank of a process */
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;

/* Return codes of handlers. */
enum {
    SUCCESS = 0,              /* payload and completion handlers: done */
    SUCCESS_PENDING = 1,      /* completion handlers: done, but no completion at the host: the match entry stays open */
    PROCESS_DATA = 2,         /* header handlers: run the payload handlers */
    PROCESS_DATA_PENDING = 3, /* this code and the next two: as without _PENDING, but the match entry stays open */
    PROCEED = 4,              /* header handlers: skip the payload handlers, deposit the data in host memory */
    PROCEED_PENDING = 5,
    DROP = 6,                 /* header handlers: drop the message; payload handlers: count the bytes as dropped */
    DROP_PENDING = 7,
    FAIL = -1,                /* an error, reported to the host */
    SEGV = -2                 /* an error, reported to the host */
};

/* Return codes of the card's functions. */
enum {
    PTL_OK = 0,
    PTL_FAIL = 1,
    PTL_ARG_INVALID = 2,
    PTL_SEGV = 3,             /* an address outside the accessible memory */
    PTL_NO_SPACE = 4
};

/* The host memory of an offset. */
enum {
    PTL_ME_HOST_MEM = 0,      /* the memory of the match entry */
    PTL_HANDLER_HOST_MEM = 1  /* the second region, which only handlers use */
};

/* A handler cannot receive an acknowledgement. A put that requests one returns PTL_ARG_INVALID. */
typedef enum { PTL_NO_ACK_REQ = 0, PTL_ACK_REQ = 1 } ptl_ack_req_t;

/* The operation of a message. The card itself executes gets and atomics, if the header handler allows them. No payload
 * handler runs for these, and PROCESS_DATA and PROCEED are equivalent. With DROP, the initiator gets PTL_NI_DROPPED. */
enum {
    PTL_TYPE_PUT = 0,
    PTL_TYPE_GET = 1,
    PTL_TYPE_ATOMIC = 2,
    PTL_TYPE_FETCH_ATOMIC = 3,
    PTL_TYPE_SWAP = 4
};

/* The header of the message. It is read-only. */
typedef struct {
    uint32_t type;            /* the operation: PTL_TYPE_PUT, ... */
    ptl_size_t length;        /* bytes that the initiator sent, or requests */
    ptl_process_t source_id;
    ptl_process_t target_id;
    ptl_match_bits_t match_bits;
    ptl_hdr_data_t hdr_data;
    ptl_size_t offset;        /* offset of the first byte in the match entry's memory */
    ptl_size_t manipulated_length; /* bytes after truncation */
    const uint8_t *base;      /* the first packet's payload */
    ptl_size_t packet_length; /* its length */
} ptl_header_t;

/* The payload of one packet. The handler may change the bytes while it runs. */
typedef struct {
    uint8_t *base;
    ptl_size_t length;        /* bytes in this packet */
    ptl_size_t offset;        /* offset of its first byte in the message */
#if __riscv_xlen == 64
    uint64_t reserved;        /* without this field, the structure would be in registers */
#endif
} ptl_payload_t;

typedef uint32_t ptl_dma_h;   /* a DMA in flight */

/* The three handlers by their usual names. A program defines the handlers that it needs. */
int header_handler(const ptl_header_t h, void *state);
int payload_handler(const ptl_payload_t p, void *state);
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);

/* Commands to the card. The number is in a7, arguments are in the registers from a0 on, and the result is in a0. */
enum {
    NICETY_PUT_FROM_DEVICE = 0x101,
    NICETY_PUT_FROM_HOST = 0x102,
    NICETY_GET_TO_HOST = 0x103,
    NICETY_DMA_TO_HOST = 0x110,
    NICETY_DMA_FROM_HOST = 0x111,
    NICETY_DMA_CAS = 0x112,
    NICETY_DMA_FETCH_ADD = 0x113,
    NICETY_DMA_TEST = 0x114,
    NICETY_DMA_WAIT = 0x115,
    NICETY_CT_INC = 0x120,
    NICETY_CT_GET = 0x121,
    NICETY_CT_SET = 0x122,
    NICETY_CAS = 0x130,
    NICETY_FADD = 0x131,
    NICETY_YIELD = 0x140,
    NICETY_PRINTF = 0x150
};

#define NICETY_INLINE static inline __attribute__((always_inline, unused))

NICETY_INLINE int nicety_command(uint32_t number, uintptr_t x0, uintptr_t x1, uintptr_t x2, uintptr_t x3, uintptr_t x4) {
    register uintptr_t a0 __asm__("a0") = x0;
    register uintptr_t a1 __asm__("a1") = x1;
    register uintptr_t a2 __asm__("a2") = x2;
    register uintptr_t a3 __asm__("a3") = x3;
    register uintptr_t a4 __asm__("a4") = x4;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a7) : "memory");
    return (int)a0;
}

/* The arguments of a put. They are in memory, because they exceed the argument registers. */
typedef struct {
    ptl_match_bits_t match_bits;
    ptl_hdr_data_t hdr_data;
    ptl_process_t target_id;
    ptl_size_t remote_offset;
    uint32_t options;         /* ct in the low half, ack_req in the high half */
    uint32_t user_ptr;
} nicety_put_t;

/* Sends `len` bytes of HPU memory, or of the packet, to the same portal table entry of another process. The maximum is
 * one packet. The bytes are read before the function returns. With `ct` = 1, the match entry's counter counts the
 * send. */
NICETY_INLINE int PtlHandlerPutFromDevice(const void *local, ptl_size_t len, uint32_t ct, ptl_ack_req_t ack_req,
                                          ptl_process_t target_id, ptl_match_bits_t match_bits,
                                          ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
    nicety_put_t put = {match_bits, hdr_data, target_id, remote_offset, ct | (uint32_t)ack_req << 16,
                        (uint32_t)(uintptr_t)user_ptr};
    return nicety_command(NICETY_PUT_FROM_DEVICE, (uintptr_t)local, len, (uintptr_t)&put, 0, 0);
}

/* Sends any number `len` of bytes of the match entry's host memory at `offset`. The card fetches the bytes after the
 * function has returned. */
NICETY_INLINE int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t len, uint32_t ct, ptl_ack_req_t ack_req,
                                        ptl_process_t target_id, ptl_match_bits_t match_bits,
                                        ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
    nicety_put_t put = {match_bits, hdr_data, target_id, remote_offset, ct | (uint32_t)ack_req << 16,
                        (uint32_t)(uintptr_t)user_ptr};
    return nicety_command(NICETY_PUT_FROM_HOST, offset, len, (uintptr_t)&put, 0, 0);
}

/* Gets any number `len` of bytes from the same portal table entry of another process into host memory at `offset`. This
 * is the match entry's memory, or the handlers' own memory with PTL_HANDLER_HOST_MEM. `remote_offset` is an offset in
 * the memory of the matching entry there. The function returns when the card has taken the request. With `ct` = 1, the
 * match entry's counter counts one success when the bytes are in host memory, or a failure if the target refuses. */
NICETY_INLINE int PtlHandlerGetToHost(ptl_size_t offset, ptl_size_t len, unsigned options, uint32_t ct,
                                      ptl_process_t target_id, ptl_match_bits_t match_bits,
                                      ptl_size_t remote_offset) {
    nicety_put_t get = {match_bits, 0, target_id, remote_offset, ct, 0};
    return nicety_command(NICETY_GET_TO_HOST, offset, len, (uintptr_t)&get, options, 0);
}

/* Copies `len` bytes to host memory. The bytes are read before the non-blocking form returns. The handle is done when
 * the bytes have been handed to the bus. The blocking form returns at the same time. */
NICETY_INLINE int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned options,
                                        ptl_dma_h *handle) {
    return nicety_command(NICETY_DMA_TO_HOST, (uintptr_t)local, offset, len, options,
                          (uintptr_t)handle);
}
NICETY_INLINE int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned options) {
    return nicety_command(NICETY_DMA_TO_HOST, (uintptr_t)local, offset, len, options, 0);
}

/* Copies `len` bytes from host memory. The non-blocking form has written `local` when the handle is done. The stack and
 * the packet of a handler that has ended are not written any more. */
NICETY_INLINE int PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t len, unsigned options,
                                          ptl_dma_h *handle) {
    return nicety_command(NICETY_DMA_FROM_HOST, offset, (uintptr_t)local, len, options,
                          (uintptr_t)handle);
}
NICETY_INLINE int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t len, unsigned options) {
    return nicety_command(NICETY_DMA_FROM_HOST, offset, (uintptr_t)local, len, options, 0);
}

/* 64-bit compare-and-swap in host memory. *cmpval becomes the previous value. */
NICETY_INLINE int PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned options,
                                     ptl_dma_h *handle) {
    return nicety_command(NICETY_DMA_CAS, offset, (uintptr_t)cmpval, (uintptr_t)&swapval,
                          options, (uintptr_t)handle);
}
NICETY_INLINE int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned options) {
    return nicety_command(NICETY_DMA_CAS, offset, (uintptr_t)cmpval, (uintptr_t)&swapval,
                          options, 0);
}

/* 64-bit fetch-and-add in host memory. *result becomes the previous value. */
NICETY_INLINE int PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t increment, uint64_t *result, unsigned options,
                                          ptl_dma_h *handle) {
    return nicety_command(NICETY_DMA_FETCH_ADD, offset, (uintptr_t)result,
                          (uintptr_t)&increment, options, (uintptr_t)handle);
}
NICETY_INLINE int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t increment, uint64_t *result, unsigned options) {
    return nicety_command(NICETY_DMA_FETCH_ADD, offset, (uintptr_t)result,
                          (uintptr_t)&increment, options, 0);
}

/* Returns 1 if a DMA is done, or 0 if it is not. */
NICETY_INLINE int PtlHandlerDMATest(ptl_dma_h handle) { return nicety_command(NICETY_DMA_TEST, handle, 0, 0, 0, 0); }
/* Waits until a DMA is done. The core blocks meanwhile. */
NICETY_INLINE int PtlHandlerDMAWait(ptl_dma_h handle) { return nicety_command(NICETY_DMA_WAIT, handle, 0, 0, 0, 0); }

/* Operations on the counter of the match entry. */
NICETY_INLINE int PtlHandlerCTInc(uint64_t increment) {
    return nicety_command(NICETY_CT_INC, (uint32_t)increment, (uint32_t)(increment >> 32), 0, 0, 0);
}
NICETY_INLINE int PtlHandlerCTGet(uint64_t *value) {
    return nicety_command(NICETY_CT_GET, (uintptr_t)value, 0, 0, 0, 0);
}
NICETY_INLINE int PtlHandlerCTSet(uint64_t value) {
    return nicety_command(NICETY_CT_SET, (uint32_t)value, (uint32_t)(value >> 32), 0, 0, 0);
}

/* Atomic operations on 64 bits of HPU memory, 8-byte aligned. CAS returns 1 if it swapped, or 0 otherwise. */
NICETY_INLINE int PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval) {
    return nicety_command(NICETY_CAS, (uintptr_t)value, (uint32_t)cmpval, (uint32_t)(cmpval >> 32),
                          (uint32_t)swapval, (uint32_t)(swapval >> 32));
}
NICETY_INLINE int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t increment) {
    return nicety_command(NICETY_FADD, (uintptr_t)value, (uintptr_t)before, (uint32_t)increment,
                          (uint32_t)(increment >> 32), 0);
}

/* Lets other work that waits for this core run first: handlers that are ready, and those that have yielded before.
 * Meanwhile the handler keeps its stack and its packet, its cycles do not count, and an LR is dropped. Returns at once
 * if no work waits, or if the card cannot park another handler on this core (hpu.parked). */
NICETY_INLINE int PtlHandlerYield(void) { return nicety_command(NICETY_YIELD, 0, 0, 0, 0, 0); }

/* Returns the number of the core that runs the handler. */
NICETY_INLINE uint32_t PtlHandlerHPU(void) {
    uint32_t id;
    __asm__ volatile("csrr %0, mhartid" : "=r"(id));
    return id;
}

/* Prints to the simulation's log, with time, node and HPU. The conversions are d i u x X o c s p and %. Flags, width,
 * precision and the lengths hh h l ll z are supported. Floating point is not supported. A call costs hpu.cycles.printf
 * and hpu.cycles.printf_byte. */
#ifdef NICETY_STDIO_H
#define printf nicety_printf /* the printf of stdio.h is for bare programs */
#endif
__attribute__((format(__printf__, 1, 2), unused, noinline)) static int printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = nicety_command(NICETY_PRINTF, (uintptr_t)format, (uintptr_t)arguments, 0, 0, 0);
    va_end(arguments);
    return written;
}

/* Functions of the runtime, which is linked with every handler. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
