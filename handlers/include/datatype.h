/* datatype.h: the layouts of the handlers of `nicety bench datatype`. One of the layouts is the state. */
#ifndef NICETY_DATATYPE_H
#define NICETY_DATATYPE_H

#include <nicety.h>

/* Blocks of one length. The distance between the starts of blocks in host memory is `stride_bytes`. */
typedef struct {
    ptl_size_t block_bytes;
    ptl_size_t stride_bytes;
} vector_t;

typedef struct {
    ptl_size_t message_offset; /* offset of the block's first byte in the message */
    ptl_size_t host_offset;    /* offset of this byte in the match entry's memory */
} block_t;

/* Blocks of any lengths, in the order of the message. One more entry has the message's length as the offset. */
typedef struct {
    uint32_t blocks;
    uint32_t unused;
    block_t block[];
} list_t;

#endif
