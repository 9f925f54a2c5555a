/* Strided receive. The blocks of a message go to host memory with the same gap after each block. */
#include <datatype.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const vector_t *v = state;
    /* The packet may begin inside a block. One division finds this block, and steps find the others. */
    const ptl_size_t block = p.offset / v->block_bytes;
    ptl_size_t within = p.offset - block * v->block_bytes;
    ptl_size_t to = block * v->stride_bytes + within;
    for (ptl_size_t done = 0; done < p.length; within = 0) {
        const ptl_size_t left = p.length - done, whole = v->block_bytes - within;
        const ptl_size_t piece = left < whole ? left : whole;
        if (PtlHandlerDMAToHostB(p.base + done, to, piece, PTL_ME_HOST_MEM) != PTL_OK)
            return FAIL;
        done += piece;
        to += piece + v->stride_bytes - v->block_bytes;
    }
    return SUCCESS;
}
