/* matching.h: the messages of `nicety bench matching`. */
#ifndef NICETY_MATCHING_H
#define NICETY_MATCHING_H

#include <nicety.h>

/* A short message is sent with its tag as the match bits, and with header data 0. For a long message, only a request
 * with the tag and without payload is sent. The request's header data have the message's number in the upper 32 bits,
 * and the message's length in the lower. The bytes are at the sender, in a match entry with this bit and the number as
 * its match bits. */
#define MATCHING_DATA (1ull << 63)

#endif
