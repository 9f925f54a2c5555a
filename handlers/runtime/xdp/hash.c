/* hash.c: hashes of all kinds. As in Linux, an update takes the lock of its bucket, and a lookup takes none. A changed key moves to
 * a spare entry, so that pointers to its old value keep their bytes. */
#include "map.h"

#if __riscv_xlen == 64
/* Two words of a key at a time. Each bit of a product of 64 bits depends on lower bits alone, and addresses in network order often
 * differ in their high byte alone. So the hash has both halves of the sum. */
typedef uint64_t mix_t;
#define MIX_BEGIN 0
/* One instruction makes it. */
#define MIX 0x5bd1e000u

MAP_INLINE mix_t mixed(mix_t sum, uint32_t first, uint32_t second) {
    /* A core's loads extend the sign of a word. */
    const uint64_t low = (uint64_t)(int32_t)first, high = (uint64_t)(int32_t)second;
    return sum + (low ^ MIX) * (high + MIX);
}

MAP_INLINE mix_t mixed_last(mix_t sum, uint32_t word) { return mixed(sum, word, 0); }

MAP_INLINE uint32_t folded(mix_t sum) { return (uint32_t)(sum ^ sum >> 32); }
#else
/* The high bits of a product depend on all bits of its word, so the bucket's number is there. Low bits of the next product need
 * them as well: addresses in network order often differ in their high byte alone. */
typedef uint32_t mix_t;
#define MIX_BEGIN 0x9e3779b9u
#define MIX 0x85ebca6bu

MAP_INLINE mix_t mixed_last(mix_t hash, uint32_t word) { return (hash ^ hash >> 15 ^ word) * MIX; }

MAP_INLINE mix_t mixed(mix_t hash, uint32_t first, uint32_t second) {
    return mixed_last(mixed_last(hash, first), second);
}

MAP_INLINE uint32_t folded(mix_t hash) { return hash; }
#endif

/* The last bytes of a key as a word: up to four. */
static uint32_t last_word(const uint8_t *at, uint32_t bytes) {
    if (bytes == 4) {
        return word_at(at);
    }
    uint32_t word = 0;
    for (uint32_t byte = 0; byte < bytes; byte++) {
        word |= (uint32_t)at[byte] << (8 * byte);
    }
    return word;
}

static uint32_t hash_bytes(const uint8_t *key, uint32_t bytes) {
    mix_t hash = MIX_BEGIN;
    for (; bytes >= 8; bytes -= 8, key += 8) {
        hash = mixed(hash, word_at(key), word_at(key + 4));
    }
    if (bytes > 4) {
        hash = mixed(hash, word_at(key), last_word(key + 4, bytes - 4));
    } else if (bytes) {
        hash = mixed_last(hash, last_word(key, bytes));
    }
    return folded(hash);
}

static uint32_t hash_of(const struct nicety_map *map, const uint8_t *key) { return hash_bytes(key, map->key_size); }

MAP_INLINE bool same_bytes(const uint8_t *own, const uint8_t *key, uint32_t bytes) {
    if ((ADDRESS(key) & 3) == 0) {
        for (; bytes >= 8; bytes -= 8, key += 8, own += 8) {
            const uint32_t first = *(const uint32_t *)key, second = *(const uint32_t *)(key + 4);
            if (first != *(const uint32_t *)own || second != *(const uint32_t *)(own + 4)) {
                return false;
            }
        }
        if (bytes >= 4) {
            if (*(const uint32_t *)key != *(const uint32_t *)own) {
                return false;
            }
            bytes -= 4, key += 4, own += 4;
        }
    }
    for (; bytes; bytes--) {
        if (*key++ != *own++) {
            return false;
        }
    }
    return true;
}

MAP_INLINE bool same_key(const struct nicety_map *map, const struct map_entry *entry, const uint8_t *key) {
    return same_bytes((const uint8_t *)entry + map->key_at, key, map->key_size);
}

#ifdef NICETY_XDP_NFP
uint32_t hash_key(const uint8_t *key, uint32_t bytes) { return hash_bytes(key, bytes); }
#endif

static struct map_bucket *bucket_of(const struct nicety_map *map, uint32_t hash) {
    return AT(struct map_bucket, map->buckets) + (hash >> map->extra);
}

/* The mark behind the last entry of a bucket. */
static uint32_t mark_of(const struct nicety_map *map, uint32_t hash) { return hash >> map->extra << 1 | 1; }

static struct map_entry *entry_at(const struct nicety_map *map, uint32_t number) {
    return AT(struct map_entry, map->memory + map->entries + number * map->entry_bytes);
}

/* The entry of a key. `before` is the word that leads to it: its user has the lock. */
MAP_INLINE struct map_entry *find(const struct nicety_map *map, const void *key, uint32_t hash, uint32_t **before) {
    struct map_bucket *bucket = bucket_of(map, hash);
    for (;;) {
        uint32_t *from = &bucket->first, next = *(volatile uint32_t *)from;
        while (next && !(next & 1)) {
            struct map_entry *entry = AT(struct map_entry, next);
            if (entry->hash == hash && same_key(map, entry, key)) {
                if (before) {
                    *before = from;
                }
                return entry;
            }
            from = &entry->next;
            next = *(volatile uint32_t *)from;
        }
        /* An entry that was moved meanwhile leads to the end of another chain. */
        if (next == 0 || next == mark_of(map, hash)) {
            return NULL;
        }
    }
}

MAP_INLINE uint8_t *values_of(const struct nicety_map *map, const void *key) {
    struct map_entry *entry = find(map, key, hash_of(map, key), NULL);
    return entry ? (uint8_t *)entry + map->value_at : NULL;
}

uint8_t *hash_find(const struct nicety_map *map, const void *key) { return values_of(map, key); }

uint8_t *lru_find(const struct nicety_map *map, const void *key) {
    uint8_t *values = values_of(map, key);
    if (values) {
        lru_mark((struct map_entry *)(values - map->value_at));
    }
    return values;
}

#ifndef NICETY_XDP_NFP
/* Whether an entry has a key of `bytes`, a multiple of 4. It reads two words in front of their comparisons, so that none waits for
 * its load. */
MAP_INLINE bool same_words(const volatile int32_t *own, const int32_t *key, uint32_t bytes) {
    for (uint32_t at = 0; at + 1 < bytes / 4; at += 2) {
        const int32_t first = own[at], second = own[at + 1];
        if (first != key[at] || second != key[at + 1]) {
            return false;
        }
    }
    return bytes % 8 == 0 || own[bytes / 4 - 1] == key[bytes / 4 - 1];
}

uint64_t nicety_bpf_map_lookup_elem(uint64_t r1, uint64_t r2);

/* A lookup in a plain or an LRU hash with an aligned key of a size that the translation knows. The key is behind the head of an
 * entry, or behind `node` bytes of the list, and the value behind the key. Addresses have the width of registers, so that none is
 * extended in the loop. */
MAP_INLINE uint64_t lookup_sized(uint64_t r1, uint64_t r2, uint32_t bytes, uint32_t node) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    const int32_t *given = AT(const int32_t, r2);
    int32_t key[4];
    mix_t hash = MIX_BEGIN;
    for (uint32_t at = 0; at < bytes / 4; at++) {
        key[at] = given[at];
    }
    for (uint32_t at = 0; at + 1 < bytes / 4; at += 2) {
        hash = mixed(hash, (uint32_t)key[at], (uint32_t)key[at + 1]);
    }
    if (bytes % 8) {
        hash = mixed_last(hash, (uint32_t)key[bytes / 4 - 1]);
    }
    /* Below 1 << 31, so that no core has to extend it. */
    const intptr_t number = (int32_t)(folded(hash) >> map->extra);
    const struct map_bucket *bucket = &AT(const struct map_bucket, map->buckets)[number];
    uintptr_t next = *(const volatile uint32_t *)&bucket->first;
    /* Entries are behind all buckets. The mark behind the last entry is smaller, and so is the 0 of a bucket that was never used. */
    while (__builtin_expect(next > (uintptr_t)bucket, 1)) {
        struct map_entry *entry = (struct map_entry *)next;
        const volatile int32_t *own = (const volatile int32_t *)((uint8_t *)(entry + 1) + node);
        if (__builtin_expect(same_words(own, key, bytes), 1)) {
            if (node) {
                lru_mark(entry);
            }
            return (uintptr_t)own + ((bytes + 7) & ~7u);
        }
        next = *(const volatile uint32_t *)&entry->next;
    }
    /* An entry that was moved meanwhile leads to the end of another chain. */
    return next == 0 || next >> 1 == (uintptr_t)number ? 0 : nicety_bpf_map_lookup_elem(r1, r2);
}

#define NODE ((uint32_t)sizeof(struct lru_node))

uint64_t nicety_bpf_map_lookup_hash4(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 4, 0); }
uint64_t nicety_bpf_map_lookup_hash8(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 8, 0); }
uint64_t nicety_bpf_map_lookup_hash12(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 12, 0); }
uint64_t nicety_bpf_map_lookup_hash16(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 16, 0); }
uint64_t nicety_bpf_map_lookup_lru4(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 4, NODE); }
uint64_t nicety_bpf_map_lookup_lru8(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 8, NODE); }
uint64_t nicety_bpf_map_lookup_lru12(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 12, NODE); }
uint64_t nicety_bpf_map_lookup_lru16(uint64_t r1, uint64_t r2) { return lookup_sized(r1, r2, 16, NODE); }

/* The usual type first, in place: a call and a table of types take longer. */
uint64_t nicety_bpf_map_lookup_elem(uint64_t r1, uint64_t r2) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    const void *key = AT(const void, r2);
    if (map->type == MAP_HASH) {
        return ADDRESS(values_of(map, key));
    }
    if (map->type == MAP_LRU_HASH) {
        return ADDRESS(lru_find(map, key));
    }
    return ADDRESS(map->type == MAP_LPM ? lpm_find(map, key) : lookup_any(map, key));
}
#endif

/* Takes an entry out of its chain. The last one's mark may remain in the bucket: it is no entry. */
static void unlink_from(uint32_t *before, const struct map_entry *entry) { *(volatile uint32_t *)before = entry->next; }

/* Makes an entry the first of its chain, then takes the old one of its key out. A reader finds one of them at any time. */
static void link_first(const struct nicety_map *map, struct map_entry *entry, uint32_t *before,
                       const struct map_entry *old) {
    struct map_bucket *bucket = bucket_of(map, entry->hash);
    entry->next = bucket->first ? bucket->first : mark_of(map, entry->hash);
    __atomic_store_n(&bucket->first, ADDRESS(entry), __ATOMIC_RELEASE);
    if (old) {
        unlink_from(before == &bucket->first ? &entry->next : before, old);
    }
}

static struct map_entry *take_free(const struct nicety_map *map) {
    struct map_head *head = map_head(map);
    struct map_entry *entry = NULL;
    lock_word(&head->lock);
    if (head->free) {
        entry = AT(struct map_entry, head->free);
        /* A reader may still follow `next`; the list uses the word of the hash. */
        head->free = entry->hash;
    } else if (head->fresh < map->max_entries) {
        entry = entry_at(map, head->fresh++);
    } else {
        head->failed++;
    }
    unlock_word(&head->lock);
    return entry;
}

static void give_free(const struct nicety_map *map, struct map_entry *entry) {
    struct map_head *head = map_head(map);
    lock_word(&head->lock);
    entry->hash = head->free;
    head->free = ADDRESS(entry);
    unlock_word(&head->lock);
}

/* The core's spare entry, with another one in its place. */
static struct map_entry *take_spare(const struct nicety_map *map, uint32_t cpu, struct map_entry *old) {
    uint32_t *spare = AT(uint32_t, map->memory + map->cores) + cpu;
    /* Updates of other buckets by the same core come before or after this one. */
    struct map_entry *entry = *spare ? AT(struct map_entry, *spare) : entry_at(map, map->max_entries + cpu);
    *spare = ADDRESS(old);
    return entry;
}

static void fill_entry(const struct nicety_map *map, struct map_entry *entry, const void *key, uint32_t hash) {
    entry->hash = hash;
    copy_bytes((uint8_t *)entry + map->key_at, key, map->key_size);
}

static int lru_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint32_t flags) {
    const uint32_t hash = hash_of(map, key);
    struct map_entry *taken = NULL, *given = NULL;
    /* As in Linux, an update takes a new entry first, which may evict, and then looks for the key. */
    if (!(is_percpu(map) && flags == MAP_PRESENT)) {
        taken = lru_take(map, value->cpu, hash);
        if (!taken) {
            return -ENOMEM;
        }
        fill_entry(map, taken, key, hash);
    }
    struct map_bucket *bucket = bucket_of(map, hash);
    lock_word(&bucket->lock);
    uint32_t *before = NULL;
    struct map_entry *old = find(map, key, hash, &before);
    int result = check_update(flags, old != NULL);
    if (result) {
        given = taken;
    } else if (old && is_percpu(map)) {
        lru_mark(old);
        map_store(map, (uint8_t *)old + map->value_at, value, false);
        given = taken;
    } else {
        map_store(map, (uint8_t *)taken + map->value_at, value, true);
        if (old) {
            lru_mark(taken);
            given = old;
        }
        link_first(map, taken, before, old);
    }
    unlock_word(&bucket->lock);
    if (given) {
        lru_give_back(map, given);
    }
    return result;
}

static int update_locked(const struct nicety_map *map, const void *key, const struct map_value *value,
                         uint32_t flags, uint32_t hash) {
    uint32_t *before = NULL;
    struct map_entry *old = find(map, key, hash, &before);
    const int result = check_update(flags & ~(uint32_t)MAP_LOCK, old != NULL);
    if (result) {
        return result;
    }
    if (old && (is_percpu(map) || flags & MAP_LOCK)) {
        uint8_t *values = (uint8_t *)old + map->value_at;
        uint32_t *lock = flags & MAP_LOCK ? (uint32_t *)(values + map->lock_at) : NULL;
        if (lock) {
            lock_word(lock);
        }
        map_store(map, values, value, false);
        if (lock) {
            unlock_word(lock);
        }
        return 0;
    }
    struct map_entry *entry = old ? take_spare(map, value->cpu, old) : take_free(map);
    if (!entry) {
        return -E2BIG;
    }
    fill_entry(map, entry, key, hash);
    map_store(map, (uint8_t *)entry + map->value_at, value, true);
    link_first(map, entry, before, old);
    return 0;
}

int hash_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint32_t flags) {
    if (is_lru(map)) {
        return lru_update(map, key, value, flags);
    }
    const uint32_t hash = hash_of(map, key);
    struct map_bucket *bucket = bucket_of(map, hash);
    lock_word(&bucket->lock);
    const int result = update_locked(map, key, value, flags, hash);
    unlock_word(&bucket->lock);
    return result;
}

int hash_delete(const struct nicety_map *map, const void *key) {
    const uint32_t hash = hash_of(map, key);
    struct map_bucket *bucket = bucket_of(map, hash);
    lock_word(&bucket->lock);
    uint32_t *before;
    struct map_entry *entry = find(map, key, hash, &before);
    if (entry) {
        unlink_from(before, entry);
    }
    unlock_word(&bucket->lock);
    if (!entry) {
        return -ENOENT;
    }
    if (is_lru(map)) {
        lru_give_back(map, entry);
    } else {
        give_free(map, entry);
    }
    return 0;
}

bool hash_evict(const struct nicety_map *map, struct map_entry *entry) {
    struct map_bucket *bucket = bucket_of(map, entry->hash);
    bool found = false;
    lock_word(&bucket->lock);
    uint32_t *from = &bucket->first;
    while (*from && !(*from & 1)) {
        struct map_entry *next = AT(struct map_entry, *from);
        if (next == entry) {
            unlink_from(from, entry);
            found = true;
            break;
        }
        from = &next->next;
    }
    unlock_word(&bucket->lock);
    return found;
}

uint64_t hash_walk(const struct nicety_map *map, map_visitor visit, void *context) {
    uint64_t count = 0;
    for (uint32_t number = 0; number <= map->mask; number++) {
        uint32_t next = AT(struct map_bucket, map->buckets)[number].first;
        while (next && !(next & 1)) {
            struct map_entry *entry = AT(struct map_entry, next);
            /* The visitor may remove the entry. */
            next = entry->next;
            count++;
            if (visit(map, (uint8_t *)entry + map->key_at, (uint8_t *)entry + map->value_at, context)) {
                return count;
            }
        }
    }
    return count;
}
