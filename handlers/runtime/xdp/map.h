/* map.h: maps of XDP programs in the card's memory.
 *
 * A map has a descriptor, which is constant, and memory, which begins with zeros. crates/ebpf/src/card writes descriptors and
 * computes all sizes and offsets; this file names the members. All addresses of a card have 32 bits, so the layout is the same on
 * cores of 32 and 64 bits.
 *
 * | types | memory |
 * |---|---|
 * | array | values, `stride` bytes each |
 * | per-CPU array | for each entry the values of all cores, so that cores use different banks |
 * | hash, hash of devices, hash of maps | a head, buckets, a spare entry for each core, entries |
 * | LRU | the same with lists in place of the spare entries (lru.c) |
 * | LPM trie | a head, nodes |
 * | array of maps, program array | addresses of maps, or of code; 0 where there is none |
 * | devices, CPUs, sockets | a word that tells whether the entry is set, then the value |
 * | queue, stack | a head, values |
 * | bloom filter | bits |
 * | ring buffer | positions; then twice its size, so that a record that passes the end is in one piece |
 * | perf events | for each core its samples |
 */
#ifndef NICETY_XDP_MAP_H
#define NICETY_XDP_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAP_HASH = 1,
    MAP_ARRAY = 2,
    MAP_PROGRAMS = 3,
    MAP_PERF_EVENTS = 4,
    MAP_PERCPU_HASH = 5,
    MAP_PERCPU_ARRAY = 6,
    MAP_LRU_HASH = 9,
    MAP_LRU_PERCPU_HASH = 10,
    MAP_LPM = 11,
    MAP_ARRAY_OF_MAPS = 12,
    MAP_HASH_OF_MAPS = 13,
    MAP_DEVICES = 14,
    MAP_CPUS = 16,
    MAP_SOCKETS = 17,
    MAP_QUEUE = 22,
    MAP_STACK = 23,
    MAP_DEVICE_HASH = 25,
    MAP_RING = 27,
    MAP_BLOOM = 30
};

/* Flags of updates. */
enum { MAP_ABSENT = 1, MAP_PRESENT = 2, MAP_LOCK = 4 };
/* Flags of maps. */
enum { MAP_NO_COMMON_LRU = 2 };

/* Linux's error numbers. */
enum {
    ENOENT = 2,
    E2BIG = 7,
    EAGAIN = 11,
    ENOMEM = 12,
    EACCES = 13,
    EFAULT = 14,
    EEXIST = 17,
    EINVAL = 22,
    ENOSPC = 28,
    EOPNOTSUPP = 95,
    ENOTSUPP = 524
};

/* A map. Offsets count from the begin of its memory, apart from `value_at`. */
struct nicety_map {
    uint32_t type, key_size, value_size, max_entries, flags;
    uint32_t inner;         /* the number of the template of inner maps, or ~0 */
    uint32_t id;            /* its number in the object */
    uint32_t cpus;          /* cores with values of their own */
    uint32_t memory;        /* the address of its memory */
    uint32_t memory_bytes;
    uint32_t stride;        /* bytes of a value, a multiple of 8 */
    uint32_t entry_bytes;   /* from one entry to the next */
    uint32_t entries;       /* the offset of the first entry */
    uint32_t key_at;        /* the offset of the key in an entry */
    uint32_t value_at;      /* the offset of the values in an entry */
    uint32_t buckets;       /* the address of the first bucket */
    uint32_t mask;          /* buckets less one; bits of a bloom filter less one */
    uint32_t cores;         /* the offset of the part of each core */
    uint32_t lock_at;       /* the offset of the bpf_spin_lock in a value, or ~0 */
    uint32_t extra;         /* hash functions of a bloom filter; the shift from a hash to its bucket's number */
};

/* The head of a hash's, a trie's or a queue's memory. */
struct map_head {
    uint32_t lock;          /* of free entries, or of all in a trie or a queue */
    uint32_t free;          /* the first of a list of free entries */
    uint32_t fresh;         /* entries that have been in use */
    uint32_t failed;        /* updates that found the map full */
    uint32_t count;
    uint32_t first;         /* the root of a trie; the oldest value of a queue */
    uint32_t changes;       /* of a trie, odd during a change */
    uint32_t ready;         /* whether the lists of an LRU map are made */
};

/* A bucket of a hash. */
struct map_bucket {
    uint32_t lock;
    uint32_t first;
};

/* An entry of a hash. The last of a chain has an odd number in `next`, of its bucket. A reader without the lock sees by it that a
 * changed entry has led it into another chain. */
struct map_entry {
    uint32_t next;
    uint32_t hash;
};

/* A node of an LRU map: the member behind the head of an entry, or the head of a list. */
struct lru_node {
    uint32_t next, prev;
    uint8_t place, referenced;
    uint16_t cpu;
    uint32_t unused;
};

#ifdef NICETY_XDP_NFP
#include <nfp.h>
#endif

#define MAP_INLINE static inline __attribute__((always_inline, unused))
#define AT(type, address) ((type *)(uintptr_t)(address))
#define ADDRESS(pointer) ((uint32_t)(uintptr_t)(pointer))

MAP_INLINE void lock_word(uint32_t *word) {
    while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE)) {
    }
}

MAP_INLINE void unlock_word(uint32_t *word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }

/* Four bytes of any address. */
MAP_INLINE uint32_t word_at(const uint8_t *at) {
#ifdef __riscv_misaligned_fast
    uint32_t word;
    __builtin_memcpy(&word, at, sizeof(word));
    return word;
#else
    return (ADDRESS(at) & 3) == 0 ? *(const uint32_t *)at
                                  : at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
#endif
}

/* The core, from 0 on. */
MAP_INLINE uint32_t this_cpu(void) {
    uintptr_t hart;
    __asm__ volatile("csrr %0, mhartid" : "=r"(hart));
#ifdef NICETY_XDP_CLUSTER
    /* PsPIN: the core in 5 bits, the cluster above them. */
    return (uint32_t)(hart >> 5) * NICETY_XDP_CLUSTER + (uint32_t)(hart & 31);
#else
    return (uint32_t)hart;
#endif
}

#ifdef NICETY_XDP_NFP
/* The most bytes of a key: with the head of its entry, it comes by one reference. */
#define NEAR_KEY 56u

/* The head and the key of an entry, fetched to local memory. The card's maps are plain hashes, which have the key there. */
struct near_entry {
    struct map_entry head;
    uint8_t key[NEAR_KEY];
};

MAP_INLINE void fetch_entry(struct near_entry *near, const struct map_entry *entry, uint32_t keys) {
    nfp_read(near, entry, (uint32_t)sizeof(near->head) + keys);
}

MAP_INLINE bool same_near(const struct near_entry *near, const uint8_t *key, uint32_t keys) {
    uint32_t at = 0;
    /* The driver takes no key that is misaligned on the stack. */
    for (; at + 4 <= keys; at += 4) {
        if (*(const uint32_t *)(near->key + at) != *(const uint32_t *)(key + at)) {
            return false;
        }
    }
    for (; at < keys; at++) {
        if (near->key[at] != key[at]) {
            return false;
        }
    }
    return true;
}

/* The hash of a key. */
uint32_t hash_key(const uint8_t *key, uint32_t bytes);
#endif

MAP_INLINE bool is_percpu(const struct nicety_map *map) {
    return map->type == MAP_PERCPU_ARRAY || map->type == MAP_PERCPU_HASH || map->type == MAP_LRU_PERCPU_HASH;
}

MAP_INLINE bool is_lru(const struct nicety_map *map) {
    return map->type == MAP_LRU_HASH || map->type == MAP_LRU_PERCPU_HASH;
}

MAP_INLINE void lru_mark(struct map_entry *entry) {
    struct lru_node *node = (struct lru_node *)(entry + 1);
    /* A store to a shared word costs more than a load on some cards. */
    if (!node->referenced) {
        node->referenced = 1;
    }
}

MAP_INLINE struct map_head *map_head(const struct nicety_map *map) { return AT(struct map_head, map->memory); }

/* Copies bytes, by words where both sides allow it. */
MAP_INLINE void copy_bytes(void *to, const void *from, uint32_t bytes) {
    uint8_t *out = to;
    const uint8_t *in = from;
    if (((ADDRESS(to) | ADDRESS(from)) & 3) == 0) {
        for (; bytes >= 4; bytes -= 4, out += 4, in += 4) {
            *(uint32_t *)out = *(const uint32_t *)in;
        }
    }
    for (; bytes; bytes--) {
        *out++ = *in++;
    }
}

MAP_INLINE void clear_bytes(void *to, uint32_t bytes) {
    uint8_t *out = to;
    if ((ADDRESS(to) & 3) == 0) {
        for (; bytes >= 4; bytes -= 4, out += 4) {
            *(uint32_t *)out = 0;
        }
    }
    for (; bytes; bytes--) {
        *out++ = 0;
    }
}

/* Checks the flags of an update against the presence of the key. */
MAP_INLINE int check_update(uint32_t flags, bool present) {
    if (flags > MAP_PRESENT) {
        return -EINVAL;
    }
    if (flags == MAP_ABSENT && present) {
        return -EEXIST;
    }
    return flags == MAP_PRESENT && !present ? -ENOENT : 0;
}

/* A value that is to be stored: that of a core, or those of all cores. */
struct map_value {
    const uint8_t *bytes;
    uint32_t cpu;
    bool all;               /* `bytes` has a value for each core, `stride` bytes apart */
};

/* Called with the key and the values of an entry. A result other than 0 ends the walk. */
typedef uint64_t (*map_visitor)(const struct nicety_map *map, const void *key, uint8_t *values, void *context);

/* Each returns the values of an entry, or null. */
uint8_t *hash_find(const struct nicety_map *map, const void *key);
/* As `hash_find`, and marks the entry as used. */
uint8_t *lru_find(const struct nicety_map *map, const void *key);
uint8_t *lpm_find(const struct nicety_map *map, const void *key);
/* The value of a program's core, or null, for a map of any type. */
uint8_t *lookup_any(const struct nicety_map *map, const void *key);
/* Each returns 0 or a negative error number. */
int hash_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint32_t flags);
int hash_delete(const struct nicety_map *map, const void *key);
int lpm_update(const struct nicety_map *map, const void *key, const uint8_t *value, uint32_t flags);
int lpm_delete(const struct nicety_map *map, const void *key);
/* Each returns the number of calls. */
uint64_t hash_walk(const struct nicety_map *map, map_visitor visit, void *context);
uint64_t lpm_walk(const struct nicety_map *map, map_visitor visit, void *context);

/* Stores a value in new or present values. */
void map_store(const struct nicety_map *map, uint8_t *values, const struct map_value *value, bool fresh);

/* Takes an entry of an LRU map for a core, or returns null. Evicted entries have left their buckets. */
struct map_entry *lru_take(const struct nicety_map *map, uint32_t cpu, uint32_t hash);
void lru_give_back(const struct nicety_map *map, struct map_entry *entry);
void lru_prepare(const struct nicety_map *map);
/* Takes an entry out of its bucket, if it is there. */
bool hash_evict(const struct nicety_map *map, struct map_entry *entry);

/* The number at a key of devices, CPUs, sockets, or null where none is set. */
const uint32_t *slot_find(const struct nicety_map *map, uint32_t key);

int queue_push(const struct nicety_map *map, const void *value, uint64_t flags);
int queue_take(const struct nicety_map *map, void *value, bool remove);
uint64_t queue_walk(const struct nicety_map *map, map_visitor visit, void *context);
int bloom_push(const struct nicety_map *map, const void *value, uint64_t flags);
int bloom_peek(const struct nicety_map *map, const void *value);

#endif
