/* host.c: maps as user space sees them. These functions run before the first packet and after the last one, on a core without time:
 * a host fills maps and reads them. */
#include "helper.h"

#define FOR_HOST __attribute__((visibility("default"), used, noinline))

/* Sets an entry of devices, CPUs, sockets, programs or maps. */
static int set_slot(const struct nicety_map *map, const void *key, const struct map_value *value, uint32_t flags) {
    uint32_t number, first;
    copy_bytes(&number, key, 4);
    copy_bytes(&first, value->bytes, 4);
    if (number >= map->max_entries) {
        return -E2BIG;
    }
    if (flags == MAP_ABSENT) {
        return -EEXIST;
    }
    uint32_t *slot = AT(uint32_t, map->memory + number * map->entry_bytes);
    if (map->type == MAP_PROGRAMS || map->type == MAP_ARRAY_OF_MAPS) {
        *slot = first;
        return 0;
    }
    *slot = first != 0 || map->type == MAP_SOCKETS;
    copy_bytes(slot + 2, value->bytes, map->value_size);
    return 0;
}

/* Updates an entry as user space does. Values are `stride` bytes apart where cores have their own. */
FOR_HOST int nicety_xdp_set(const struct nicety_map *map, const void *key, const uint8_t *values, uint32_t flags) {
    const struct map_value value = {values, 0, is_percpu(map)};
    switch (map->type) {
    case MAP_QUEUE:
    case MAP_STACK:
        return queue_push(map, values, flags);
    case MAP_BLOOM:
        return bloom_push(map, values, flags);
    case MAP_RING:
    case MAP_PERF_EVENTS:
        return -ENOTSUPP;
    case MAP_PROGRAMS:
    case MAP_ARRAY_OF_MAPS:
    case MAP_DEVICES:
    case MAP_CPUS:
    case MAP_SOCKETS:
        return flags > MAP_PRESENT ? -EINVAL : set_slot(map, key, &value, flags);
    case MAP_DEVICE_HASH:
    case MAP_HASH_OF_MAPS:
        return flags > MAP_PRESENT ? -EINVAL : hash_update(map, key, &value, flags == MAP_PRESENT ? 0 : flags);
    default:
        return map_update(map, key, &value, flags);
    }
}

/* Makes the lists of an LRU map, as Linux does when it makes the map. */
FOR_HOST void nicety_xdp_prepare(const struct nicety_map *map) {
    if (is_lru(map)) {
        lru_prepare(map);
    }
}

/* A place for entries: each is a key, filled up to 8 bytes, and its values, `stride` bytes apart. */
struct place {
    uint8_t *to, *end;
    uint32_t count;
};

static uint64_t write_entry(const struct nicety_map *map, const void *key, uint8_t *values, void *context) {
    struct place *place = context;
    const uint32_t keys = (map->key_size + 7) & ~7u, copies = is_percpu(map) ? map->cpus : 1;
    if ((uint32_t)(place->end - place->to) < keys + copies * map->stride) {
        return 1;
    }
    if (key) {
        copy_bytes(place->to, key, map->key_size);
    }
    place->to += keys;
    for (uint32_t copy = 0; copy < copies; copy++, place->to += map->stride) {
        copy_bytes(place->to, values + copy * map->stride, map->value_size);
        if (map->lock_at != ~0u) {
            clear_bytes(place->to + map->lock_at, 4);
        }
    }
    place->count++;
    return 0;
}

/* Writes all entries, and returns their number. */
FOR_HOST uint32_t nicety_xdp_entries(const struct nicety_map *map, uint8_t *to, uint32_t bytes) {
    struct place place = {to, to + bytes, 0};
    switch (map->type) {
    case MAP_ARRAY:
    case MAP_PERCPU_ARRAY:
        array_walk(map, write_entry, &place);
        break;
    case MAP_LPM:
        lpm_walk(map, write_entry, &place);
        break;
    case MAP_QUEUE:
    case MAP_STACK:
        queue_walk(map, write_entry, &place);
        break;
    case MAP_DEVICES:
    case MAP_CPUS:
    case MAP_SOCKETS:
    case MAP_PROGRAMS:
    case MAP_ARRAY_OF_MAPS:
        for (uint32_t key = 0; key < map->max_entries; key++) {
            uint32_t *slot = AT(uint32_t, map->memory + key * map->entry_bytes);
            if (*slot) {
                write_entry(map, &key, (uint8_t *)(map->entry_bytes > 4 ? slot + 2 : slot), &place);
            }
        }
        break;
    case MAP_RING:
    case MAP_PERF_EVENTS:
    case MAP_BLOOM:
        break;
    default:
        hash_walk(map, write_entry, &place);
    }
    return place.count;
}
