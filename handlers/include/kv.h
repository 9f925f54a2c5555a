/* kv.h: the hash table of `nicety bench kv` in host memory, the state of its handlers, and its messages. */
#ifndef NICETY_KV_H
#define NICETY_KV_H

#include <nicety.h>

/* The kind of a message, in its match bits. A request's payload is a key, followed by the value for KV_INSERT. */
enum {
    KV_INSERT = 1,
    KV_LOOKUP = 2,
    KV_REPLY = 3 /* its header data are one of the answers below */
};

enum {
    KV_INSERTED = 0,
    KV_UPDATED = 1, /* the key was there, and has the new value now */
    KV_FOUND = 2,   /* the reply carries the value */
    KV_ABSENT = 3,
    KV_FULL = 4     /* the key is not there, and no bucket is free for the key */
};

/* A bucket in host memory begins with a word, followed by the key and the value. The word is 0 while the bucket is
 * empty. Later it is the key's hash << 32, with one of these values in the low bits. */
enum {
    KV_BUSY = 1, /* a handler is writing the key or the value */
    KV_READY = 2
};

typedef struct {
    uint32_t buckets;
    ptl_size_t key_bytes;    /* multiples of 8 */
    ptl_size_t value_bytes;
    ptl_size_t bucket_bytes; /* 8 bytes, and the key and the value */
    uint8_t room[];          /* for a bucket per processor */
} kv_t;

#endif
