/* frame.h: the interface of a frame handler to its card.
 *
 *     __handler int frame_handler(const frame_t *frame, void *state);
 *
 * The handler runs once for each frame that its rule selects. Any number of runs may be concurrent, in any order. The
 * handler has the whole frame, from the destination address on and without the check sequence. It may change the
 * frame's bytes and length. Its return value is the destination of the frame. All runs share `state`, which is in the
 * card's memory.
 */
#ifndef FRAME_H
#define FRAME_H

#include <nicety.h>

/* The destination of a frame. */
enum {
    FRAME_DROP = 0,           /* nowhere */
    FRAME_HOST = 1,           /* to the host, by the card's usual choice of a receive channel */
    FRAME_WIRE = 2,           /* on the wire, to the frame's destination address; padded to 60 bytes */
    FRAME_FAIL = -1           /* nowhere: an error, which is reported */
};
/* Destination: the host, through receive channel n. */
#define FRAME_QUEUE(n) (0x100 + (int)(n))

/* A frame. The functions below change the struct, so values that were read before are not valid afterwards. */
typedef struct {
    uint8_t *data;            /* the first byte of the destination address */
    uint32_t length;          /* length in bytes */
    uint32_t rule;            /* the number of the frame's rule, from 0 on */
    uint32_t channel;         /* the receive channel to which FRAME_HOST would send the arrived frame */
} frame_t;

int frame_handler(const frame_t *frame, void *state);

enum { NICETY_FRAME_PUSH = 0x170, NICETY_FRAME_PULL = 0x171, NICETY_FRAME_RESIZE = 0x172 };

/* Prepends `bytes` bytes to the frame. The bytes are zeros, or the bytes that frame_pull removed there. Returns the new
 * first byte. The card stops a handler that requests more than the remaining headroom. */
NICETY_INLINE uint8_t *frame_push(const frame_t *frame, uint32_t bytes) {
    nicety_command(NICETY_FRAME_PUSH, bytes, 0, 0, 0, 0);
    return frame->data;
}

/* Removes `bytes` bytes from the beginning of the frame, which must have more bytes. Returns the new first byte. */
NICETY_INLINE uint8_t *frame_pull(const frame_t *frame, uint32_t bytes) {
    nicety_command(NICETY_FRAME_PULL, bytes, 0, 0, 0, 0);
    return frame->data;
}

/* Sets the length of the frame, by a change at the frame's end. New bytes are zeros, or the bytes that were there
 * before. A forwarded frame must have 14 bytes up to the card's MTU with headers. */
NICETY_INLINE void frame_resize(const frame_t *frame, uint32_t length) {
    (void)frame;
    nicety_command(NICETY_FRAME_RESIZE, length, 0, 0, 0, 0);
}

/* Read or write bytes of the frame, possibly misaligned, in network order. */
NICETY_INLINE uint16_t frame_get16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

NICETY_INLINE uint32_t frame_get32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

NICETY_INLINE void frame_put16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

NICETY_INLINE void frame_put32(uint8_t *at, uint32_t value) {
    frame_put16(at, (uint16_t)(value >> 16));
    frame_put16(at + 2, (uint16_t)value);
}

/* Read or write bytes of the frame, possibly misaligned, in the core's own order. This order is sufficient for bytes
 * that are only compared, hashed or copied. */
NICETY_INLINE uint16_t frame_load16(const uint8_t *at) {
    uint16_t value;
    __builtin_memcpy(&value, at, 2);
    return value;
}

NICETY_INLINE uint32_t frame_load32(const uint8_t *at) {
    uint32_t value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

NICETY_INLINE void frame_store16(uint8_t *at, uint16_t value) {
    __builtin_memcpy(at, &value, 2);
}

NICETY_INLINE void frame_store32(uint8_t *at, uint32_t value) {
    __builtin_memcpy(at, &value, 4);
}

/* Swaps `bytes` bytes at two places. */
NICETY_INLINE void frame_swap(uint8_t *a, uint8_t *b, uint32_t bytes) {
    uint32_t i = 0;
    for (; i + 4 <= bytes; i += 4) {
        const uint32_t word = frame_load32(a + i);
        frame_store32(a + i, frame_load32(b + i));
        frame_store32(b + i, word);
    }
    for (; i < bytes; i++) {
        const uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Updates an Internet checksum after a 16-bit word of the data was replaced by another one (RFC 1624, 3). */
NICETY_INLINE uint16_t frame_checksum(uint16_t checksum, uint16_t gone, uint16_t come) {
    uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~gone + come;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Updates an Internet checksum after 32 bits of the data were replaced. The sum is the same in either byte order, if
 * all three values are in the same order (RFC 1071, 2). */
NICETY_INLINE uint16_t frame_checksum32(uint16_t checksum, uint32_t gone, uint32_t come) {
    uint32_t sum = (uint16_t)~checksum + (~gone & 0xffff) + (~gone >> 16) + (come & 0xffff) + (come >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

#endif
