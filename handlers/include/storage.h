/* storage.h: the states of the handlers of `nicety bench storage`'s servers, and their messages. */
#ifndef NICETY_STORAGE_H
#define NICETY_STORAGE_H

#include <nicety.h>

/* The kind of a message, in its match bits. The comments also state its header data, after a semicolon. */
enum {
    STORAGE_READ = 1,  /* to any server: a request for a block; offset << 32 | length */
    STORAGE_WRITE = 2, /* to a data server: a block to store; offset of the block */
    STORAGE_DIFF = 3,  /* to the parity server: a part of a write's difference; the length of the whole write */
    STORAGE_ACK = 4,   /* from the parity server: the whole write is in the parity */
    STORAGE_DONE = 5,  /* to the client: the write is stored, and in the parity */
    STORAGE_BLOCK = 6  /* a requested block */
};

/* The state of a data server. A client has one write at a time in progress at each server, so the state can hold the
 * place of the write. */
typedef struct {
    ptl_process_t parity;    /* the rank of the parity server */
    ptl_size_t packet_bytes; /* maximum payload of a packet on this card, rounded up to 16 */
    ptl_process_t client;    /* the client of the write in progress; from here on for the handlers' own use */
    ptl_size_t offset;
    ptl_size_t length;
    uint32_t unused[3];
    uint8_t old[]; /* room for a packet per processor */
} data_t;

#define STORAGE_SOURCES 64
#define STORAGE_LOCKS 64

/* The state of the parity server, and of a server that is rebuilt. Arriving bytes are XORed into host memory. Parts for
 * the same place may arrive from several servers at once, so each place of a packet's length has a lock. */
typedef struct {
    ptl_size_t packet_bytes; /* maximum payload of a packet on this card, rounded up to 16 */
    uint32_t unused[3];
    uint64_t received[STORAGE_SOURCES]; /* bytes of the write in progress at each data server, by its rank; 0 at first */
    uint64_t lock[STORAGE_LOCKS];       /* 1 while a handler is at the place, 0 otherwise */
    uint8_t old[];                      /* room for a packet per processor */
} parity_t;

#endif
