/* matching.h: the messages of `nicety bench matching`. */
#ifndef NICETY_MATCHING_H
#define NICETY_MATCHING_H

#include <nicety.h>

/* A short message is sent with its tag as its match bits, and header data 0. For a long one only a request is sent:
 * with the tag and without payload. Its header data have the message's number in the upper 32 bits and its length in
 * the lower. The bytes are at the sender behind a match entry. Its match bits are this one and the number. */
#define MATCHING_DATA (1ull << 63)

#endif
