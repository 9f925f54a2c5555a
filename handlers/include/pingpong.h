/* pingpong.h: the state that `nicety bench` gives to ping-pong handlers. */
#ifndef NICETY_PINGPONG_H
#define NICETY_PINGPONG_H

#include <nicety.h>

typedef struct {
    ptl_match_bits_t match_bits; /* of the reply */
    ptl_process_t peer;          /* the reply's target */
    ptl_size_t packet_bytes;     /* most payload that a packet carries on this card */
    ptl_size_t length;           /* of the message in progress; for the handlers' own use, 0 at first */
} pingpong_t;

#endif
