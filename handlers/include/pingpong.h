/* pingpong.h: the state of the ping-pong handlers of `nicety bench`. */
#ifndef NICETY_PINGPONG_H
#define NICETY_PINGPONG_H

#include <nicety.h>

typedef struct {
    ptl_match_bits_t match_bits; /* the match bits of the reply */
    ptl_process_t peer;          /* the reply's target */
    ptl_size_t packet_bytes;     /* maximum payload of a packet on this card */
    ptl_size_t length;           /* length of the message in progress; for the handlers' own use, 0 at first */
} pingpong_t;

#endif
