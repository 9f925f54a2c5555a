/* queue.c: maps without keys: queue, stack, bloom filter. */
#include "map.h"

static uint8_t *value_at(const struct nicety_map *map, uint32_t number) {
    return AT(uint8_t, map->memory + map->entries + number * map->stride);
}

/* The place of the value that is `behind` places behind the oldest one. */
static uint32_t place_of(const struct nicety_map *map, uint32_t behind) {
    const uint32_t place = map_head(map)->first + behind;
    return place >= map->max_entries ? place - map->max_entries : place;
}

int queue_push(const struct nicety_map *map, const void *value, uint64_t flags) {
    struct map_head *head = map_head(map);
    if (flags & MAP_ABSENT || flags > MAP_PRESENT) {
        return -EINVAL;
    }
    int result = 0;
    lock_word(&head->lock);
    if (head->count == map->max_entries && flags != MAP_PRESENT) {
        head->failed++;
        result = -E2BIG;
    } else {
        if (head->count == map->max_entries) {
            head->first = place_of(map, 1);
            head->count--;
        }
        copy_bytes(value_at(map, place_of(map, head->count)), value, map->value_size);
        head->count++;
    }
    unlock_word(&head->lock);
    return result;
}

int queue_take(const struct nicety_map *map, void *value, bool remove) {
    struct map_head *head = map_head(map);
    int result = 0;
    lock_word(&head->lock);
    if (head->count == 0) {
        clear_bytes(value, map->value_size);
        result = -ENOENT;
    } else {
        const bool stack = map->type == MAP_STACK;
        copy_bytes(value, value_at(map, place_of(map, stack ? head->count - 1 : 0)), map->value_size);
        if (remove) {
            head->first = stack ? head->first : place_of(map, 1);
            head->count--;
        }
    }
    unlock_word(&head->lock);
    return result;
}

uint64_t queue_walk(const struct nicety_map *map, map_visitor visit, void *context) {
    for (uint32_t behind = 0; behind < map_head(map)->count; behind++) {
        visit(map, NULL, value_at(map, place_of(map, behind)), context);
    }
    return map_head(map)->count;
}

static uint32_t turned(uint32_t word, uint32_t left) { return word << left | word >> (32 - left); }

/* Jenkins's hash as Linux computes it, so that the same values collide. */
static uint32_t jhash(const uint8_t *value, uint32_t bytes, uint32_t seed) {
    uint32_t a, b, c;
    a = b = c = 0xdeadbeefu + bytes + seed;
    uint32_t words[3];
    while (bytes) {
        const uint32_t block = bytes > 12 ? 12 : bytes;
        words[0] = words[1] = words[2] = 0;
        for (uint32_t at = 0; at < block; at++) {
            words[at / 4] += (uint32_t)value[at] << (8 * (at % 4));
        }
        a += words[0], b += words[1], c += words[2];
        if (bytes <= 12) {
            c = (c ^ b) - turned(b, 14);
            a = (a ^ c) - turned(c, 11);
            b = (b ^ a) - turned(a, 25);
            c = (c ^ b) - turned(b, 16);
            a = (a ^ c) - turned(c, 4);
            b = (b ^ a) - turned(a, 14);
            return (c ^ b) - turned(b, 24);
        }
        a = (a - c) ^ turned(c, 4), c += b;
        b = (b - a) ^ turned(a, 6), a += c;
        c = (c - b) ^ turned(b, 8), b += a;
        a = (a - c) ^ turned(c, 16), c += b;
        b = (b - a) ^ turned(a, 19), a += c;
        c = (c - b) ^ turned(b, 4), b += a;
        value += 12, bytes -= 12;
    }
    return c;
}

int bloom_push(const struct nicety_map *map, const void *value, uint64_t flags) {
    if (flags) {
        return -EINVAL;
    }
    for (uint32_t seed = 0; seed < map->extra; seed++) {
        const uint32_t place = jhash(value, map->value_size, seed) & map->mask;
        __atomic_fetch_or(AT(uint32_t, map->memory) + place / 32, 1u << (place % 32), __ATOMIC_RELAXED);
    }
    return 0;
}

int bloom_peek(const struct nicety_map *map, const void *value) {
    for (uint32_t seed = 0; seed < map->extra; seed++) {
        const uint32_t place = jhash(value, map->value_size, seed) & map->mask;
        if (!(AT(uint32_t, map->memory)[place / 32] >> (place % 32) & 1)) {
            return -ENOENT;
        }
    }
    return 0;
}
