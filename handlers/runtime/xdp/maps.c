/* maps.c: helpers of programs on maps, by their types. */
#include "check.h"

static void store_one(const struct nicety_map *map, uint8_t *to, const uint8_t *value, bool fresh) {
    if (map->lock_at == ~0u) {
        copy_bytes(to, value, map->value_size);
        return;
    }
    /* An update leaves a lock alone. */
    const uint32_t behind = map->lock_at + 4;
    copy_bytes(to, value, map->lock_at);
    copy_bytes(to + behind, value + behind, map->value_size - behind);
    if (fresh) {
        *(uint32_t *)(to + map->lock_at) = 0;
    }
}

void map_store(const struct nicety_map *map, uint8_t *values, const struct map_value *value, bool fresh) {
    if (!is_percpu(map)) {
        store_one(map, values, value->bytes, fresh);
        return;
    }
    for (uint32_t cpu = 0; cpu < map->cpus; cpu++, values += map->stride) {
        if (value->all) {
            copy_bytes(values, value->bytes + cpu * map->stride, map->value_size);
        } else if (cpu == value->cpu) {
            copy_bytes(values, value->bytes, map->value_size);
        } else if (fresh) {
            clear_bytes(values, map->value_size);
        }
    }
}

static uint32_t read_word(const void *from) {
    uint32_t word;
    copy_bytes(&word, from, 4);
    return word;
}

/* The values of an entry of an array, or null. */
static uint8_t *array_find(const struct nicety_map *map, const void *key) {
    const uint32_t number = read_word(key);
    return number < map->max_entries ? AT(uint8_t, map->memory + number * map->entry_bytes) : NULL;
}

const uint32_t *slot_find(const struct nicety_map *map, uint32_t key) {
    if (map->type == MAP_DEVICE_HASH) {
        return (const uint32_t *)hash_find(map, &key);
    }
    if (key >= map->max_entries) {
        return NULL;
    }
    uint32_t *slot = AT(uint32_t, map->memory + key * map->entry_bytes);
    return *slot ? slot + 2 : NULL;
}

/* The values of an entry, or the address of a map. */
static uint8_t *find(const struct nicety_map *map, const void *key) {
    switch (map->type) {
    case MAP_ARRAY:
    case MAP_PERCPU_ARRAY:
        return array_find(map, key);
    case MAP_HASH:
    case MAP_PERCPU_HASH:
    case MAP_DEVICE_HASH:
        return hash_find(map, key);
    case MAP_LRU_HASH:
    case MAP_LRU_PERCPU_HASH:
        return lru_find(map, key);
    case MAP_LPM:
        return lpm_find(map, key);
    case MAP_DEVICES:
    case MAP_SOCKETS:
        return (uint8_t *)slot_find(map, read_word(key));
    case MAP_ARRAY_OF_MAPS:
    case MAP_HASH_OF_MAPS: {
        const uint8_t *value = map->type == MAP_ARRAY_OF_MAPS ? array_find(map, key) : hash_find(map, key);
        return value ? AT(uint8_t, *(const uint32_t *)value) : NULL;
    }
    default:
        return NULL;
    }
}

uint8_t *lookup_any(const struct nicety_map *map, const void *key) {
    uint8_t *values = find(map, key);
    return values && is_percpu(map) ? values + this_cpu() * map->stride : values;
}

uint64_t nicety_bpf_map_lookup_percpu_elem(uint64_t r1, uint64_t r2, uint64_t cpu) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    uint8_t *values = find(map, AT(const void, r2));
    return values && (uint32_t)cpu < map->cpus ? ADDRESS(values + (uint32_t)cpu * map->stride) : 0;
}

static int array_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint32_t flags) {
    uint8_t *values = array_find(map, key);
    if (!values) {
        return -E2BIG;
    }
    const int result = check_update(flags & ~(uint32_t)MAP_LOCK, true);
    if (result) {
        return result;
    }
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

int map_update(const struct nicety_map *map, const void *key, const struct map_value *value, uint64_t flags) {
    const bool has_lock = map->lock_at != ~0u && (map->type == MAP_HASH || map->type == MAP_ARRAY);
    if ((flags & ~(uint64_t)MAP_LOCK) > MAP_PRESENT || (flags & MAP_LOCK && !has_lock)) {
        return -EINVAL;
    }
    switch (map->type) {
    case MAP_ARRAY:
    case MAP_PERCPU_ARRAY:
        return array_update(map, key, value, (uint32_t)flags);
    case MAP_HASH:
    case MAP_PERCPU_HASH:
    case MAP_LRU_HASH:
    case MAP_LRU_PERCPU_HASH:
        return hash_update(map, key, value, (uint32_t)flags);
    case MAP_LPM:
        return lpm_update(map, key, value->bytes, (uint32_t)flags);
    default:
        return -EINVAL;
    }
}

uint64_t nicety_bpf_map_update_elem(uint64_t r1, uint64_t key, uint64_t bytes, uint64_t flags) {
    const struct map_value value = {AT(const uint8_t, bytes), this_cpu(), false};
    return returned(map_update(AT(const struct nicety_map, r1), AT(const void, key), &value, flags));
}

int map_delete(const struct nicety_map *map, const void *key) {
    switch (map->type) {
    case MAP_HASH:
    case MAP_PERCPU_HASH:
    case MAP_LRU_HASH:
    case MAP_LRU_PERCPU_HASH:
        return hash_delete(map, key);
    case MAP_LPM:
        return lpm_delete(map, key);
    default:
        return -EINVAL;
    }
}

uint64_t nicety_bpf_map_delete_elem(uint64_t r1, uint64_t key) {
    return returned(map_delete(AT(const struct nicety_map, r1), AT(const void, key)));
}

uint64_t nicety_bpf_map_push_elem(uint64_t r1, uint64_t value, uint64_t flags) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    const void *bytes = AT(const void, value);
    return returned(map->type == MAP_BLOOM ? bloom_push(map, bytes, flags) : queue_push(map, bytes, flags));
}

uint64_t nicety_bpf_map_pop_elem(uint64_t r1, uint64_t value) {
    return returned(queue_take(AT(const struct nicety_map, r1), AT(void, value), true));
}

uint64_t nicety_bpf_map_peek_elem(uint64_t r1, uint64_t value) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    void *bytes = AT(void, value);
    return returned(map->type == MAP_BLOOM ? bloom_peek(map, bytes) : queue_take(map, bytes, false));
}

/* A function of the program. */
typedef uint64_t callback(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct called {
    callback *function;
    uint64_t context;
    uint32_t cpu;
};

static uint64_t call_with(const struct nicety_map *map, const void *key, uint8_t *values, void *context) {
    const struct called *called = context;
    values += is_percpu(map) ? called->cpu * map->stride : 0;
    xdp_key(key, map->key_size);
    return called->function(ADDRESS(map), ADDRESS(key), ADDRESS(values), called->context, 0);
}

uint64_t array_walk(const struct nicety_map *map, map_visitor visit, void *context) {
    for (uint32_t number = 0; number < map->max_entries; number++) {
        const uint32_t key = number;
        if (visit(map, &key, AT(uint8_t, map->memory + number * map->entry_bytes), context)) {
            return number + 1;
        }
    }
    return map->max_entries;
}

uint64_t nicety_bpf_for_each_map_elem(uint64_t r1, uint64_t function, uint64_t context, uint64_t flags) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    if (flags) {
        return returned(-EINVAL);
    }
    struct called called = {AT(callback, function), context, this_cpu()};
    const bool is_array = map->type == MAP_ARRAY || map->type == MAP_PERCPU_ARRAY;
    const uint64_t calls = is_array ? array_walk(map, call_with, &called) : hash_walk(map, call_with, &called);
    xdp_key(NULL, 0);
    return calls;
}

uint64_t nicety_bpf_loop(uint64_t count, uint64_t function, uint64_t context, uint64_t flags) {
    callback *called = AT(callback, function);
    const uint32_t most = (uint32_t)count;
    if (flags) {
        return returned(-EINVAL);
    }
    if (most > 8u << 20) {
        return returned(-E2BIG);
    }
    for (uint32_t i = 0; i < most; i++) {
        if (called(i, context, 0, 0, 0)) {
            return (uint64_t)i + 1;
        }
    }
    return most;
}

uint64_t nicety_bpf_spin_lock(uint64_t lock) {
    lock_word(AT(uint32_t, lock));
    return 0;
}

uint64_t nicety_bpf_spin_unlock(uint64_t lock) {
    unlock_word(AT(uint32_t, lock));
    return 0;
}
