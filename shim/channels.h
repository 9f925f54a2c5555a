/* Calls of a process with channels to its card (go/nicety), and with goroutines in virtual time. This file has the
 * numbers of the calls, and the layout of their words. The NICETY_WORDS words are at the end of the process's page,
 * behind the reason for a refusal.
 *
 * The operation of a call is in `flags`. The call's arguments and results are in the words, and its result is a code.
 * One goroutine runs at a time, and makes the call. The reply may be for any goroutine. The last word has the number of
 * this goroutine. crates/exec/src/channels has the same layout. */

#ifndef NICETY_CHANNELS_H
#define NICETY_CHANNELS_H

#include "protocol.h"

#define CALL_CHANNELS 48
/* The maximum bytes of a direct message, arguments of a process of the card, and alternatives of a selection. */
#define CHANNEL_DIRECT 56
#define CHANNEL_ARGUMENTS 8
#define CHANNEL_ALTERNATIVES 1024

enum {
    CHANNELS_OPEN = 1,    /* the first call, by goroutine 0. */
    CHANNELS_LOAD,        /* address, bytes -> program. */
    CHANNELS_START,       /* program, address and bytes of a name, microengine, context, contexts or any, count, arguments -> process. */
    CHANNELS_FINISHED,    /* process -> its return value. */
    CHANNELS_MEMORY,      /* kind, island, offset, bytes -> address for processes of the card. */
    CHANNELS_READ,        /* kind, island, offset, bytes, address. */
    CHANNELS_WRITE,       /* kind, island, offset, bytes, address. */
    CHANNELS_SUBSCRIBE,   /* target -> channel. */
    CHANNELS_CLOSE,       /* channel. */
    CHANNELS_SEND,        /* channel, ps or any, bytes, contents. */
    CHANNELS_RECEIVE,     /* channel, ps or any, bytes -> none, contents. */
    CHANNELS_SEND_IND,    /* channel, ps or any, bytes, address. */
    CHANNELS_RECEIVE_IND, /* channel, ps or any, bytes, address. */
    CHANNELS_SELECT,      /* address, count, ps or any -> index, contents. An alternative is a channel, bytes, and an address or 0. */
    CHANNELS_GO,          /* -> the new goroutine. It runs when it gets a reply. */
    CHANNELS_JOIN,        /* goroutine. Returns when the goroutine has ended. */
    CHANNELS_END,         /* by goroutine 0: returns when all others have ended. Others get no reply. */
    CHANNELS_COMPUTE,     /* ps. */
    CHANNELS_SLEEP,       /* ps. */
    CHANNELS_BARRIER,
};

/* Codes of calls. */
enum { CODE_OK = 0, CODE_INPUT, CODE_FAILED, CODE_TRAP, CODE_TIMED_OUT };

#endif
