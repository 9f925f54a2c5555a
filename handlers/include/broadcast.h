/* broadcast.h: the state of the handlers of `nicety bench broadcast`, and the binomial tree. */
#ifndef NICETY_BROADCAST_H
#define NICETY_BROADCAST_H

#include <nicety.h>

typedef struct {
    ptl_match_bits_t match_bits; /* the match bits of the broadcast's messages, at all processes */
    ptl_process_t rank;          /* the rank of this process; the root is rank 0 */
    ptl_process_t processes;
    ptl_process_t half;          /* the children of this process are `half`, `half / 2`, ... 1 ranks further */
    ptl_size_t packet_bytes;     /* maximum payload of a packet on this card */
    ptl_size_t length;           /* the length of the message in progress; for the handlers' own use, 0 at first */
} broadcast_t;

/* The children in the binomial tree. The child with the largest subtree is first, because its path is the longest. The
 * tree need not be full, so ranks after the last process are omitted. */
#define FOR_EACH_CHILD(s, child) \
    for (ptl_process_t half_ = (s)->half, child; child = (s)->rank + half_, half_ > 0; half_ /= 2) \
        if (child < (s)->processes)

#endif
