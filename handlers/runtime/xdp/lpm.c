/* lpm.c: longest prefix match by a trie, as Linux's (kernel/bpf/lpm_trie.c): a node for each prefix, and one without a value where two
 * part. Updates take a lock. A lookup takes none, and begins again where an update came between. */
#include "map.h"

/* Words of the longest key. */
#define MOST_WORDS 64u

struct lpm_node {
    uint32_t child[2];
    uint32_t bits;
    uint32_t has_value;
    uint32_t words[];       /* the key's bytes, the first one in the upper byte */
};

struct lpm_key {
    uint32_t bits;
    uint32_t words[MOST_WORDS];
};

static uint32_t data_bytes(const struct nicety_map *map) { return map->key_size - 4; }
static uint32_t words_of(const struct nicety_map *map) { return (data_bytes(map) + 3) / 4; }
static uint8_t *values_of(const struct nicety_map *map, struct lpm_node *node) { return (uint8_t *)node + map->value_at; }

static void read_key(const struct nicety_map *map, const uint8_t *key, struct lpm_key *to) {
    to->bits = key[0] | (uint32_t)key[1] << 8 | (uint32_t)key[2] << 16 | (uint32_t)key[3] << 24;
    const uint8_t *at = key + 4;
    uint32_t bytes = data_bytes(map), word = 0;
    for (; bytes >= 4; bytes -= 4, at += 4) {
        to->words[word++] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    if (bytes) {
        uint32_t last = 0;
        for (uint32_t i = 0; i < 4; i++) {
            last = last << 8 | (i < bytes ? at[i] : 0);
        }
        to->words[word] = last;
    }
}

static bool same_bits(const uint32_t *a, const uint32_t *b, uint32_t bits) {
    for (; bits >= 32; bits -= 32) {
        if (*a++ != *b++) {
            return false;
        }
    }
    return bits == 0 || (*a ^ *b) >> (32 - bits) == 0;
}

/* The leading bits that two keys share, at most `most`. */
static uint32_t common_bits(const uint32_t *a, const uint32_t *b, uint32_t most) {
    for (uint32_t bits = 0; bits < most; bits += 32) {
        uint32_t differ = *a++ ^ *b++, same = bits;
        if (!differ) {
            continue;
        }
        for (; !(differ >> 31); differ <<= 1) {
            same++;
        }
        return same < most ? same : most;
    }
    return most;
}

static uint32_t bit(const uint32_t *words, uint32_t at) { return words[at / 32] >> (31 - at % 32) & 1; }

static struct lpm_node *longest(const struct nicety_map *map, const struct lpm_key *key) {
    struct lpm_node *found = NULL;
    uint32_t next = *(volatile uint32_t *)&map_head(map)->first;
    while (next) {
        struct lpm_node *node = AT(struct lpm_node, next);
        if (node->bits > key->bits || !same_bits(node->words, key->words, node->bits)) {
            break;
        }
        if (node->has_value) {
            found = node;
        }
        if (node->bits == key->bits) {
            break;
        }
        next = *(volatile uint32_t *)&node->child[bit(key->words, node->bits)];
    }
    return found;
}

uint8_t *lpm_find(const struct nicety_map *map, const void *bytes) {
    struct map_head *head = map_head(map);
    struct lpm_key key;
    read_key(map, bytes, &key);
    if (key.bits > 8 * data_bytes(map)) {
        return NULL;
    }
    for (;;) {
        const uint32_t changes = __atomic_load_n(&head->changes, __ATOMIC_ACQUIRE);
        if (changes & 1) {
            continue;
        }
        struct lpm_node *found = longest(map, &key);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (*(volatile uint32_t *)&head->changes == changes) {
            return found ? values_of(map, found) : NULL;
        }
    }
}

static struct lpm_node *take_node(const struct nicety_map *map) {
    struct map_head *head = map_head(map);
    struct lpm_node *node = AT(struct lpm_node, head->free);
    if (node) {
        head->free = node->child[0];
    } else {
        /* There are two nodes for each entry, and two more, so that this never passes the end. */
        node = AT(struct lpm_node, map->memory + map->entries + head->fresh++ * map->entry_bytes);
    }
    node->child[0] = node->child[1] = 0;
    return node;
}

static void give_node(const struct nicety_map *map, struct lpm_node *node) {
    node->child[0] = map_head(map)->free;
    map_head(map)->free = ADDRESS(node);
}

static void begin_change(struct map_head *head) {
    lock_word(&head->lock);
    __atomic_store_n(&head->changes, head->changes + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(struct map_head *head) {
    __atomic_store_n(&head->changes, head->changes + 1, __ATOMIC_RELEASE);
    unlock_word(&head->lock);
}

static void copy_words(const struct nicety_map *map, struct lpm_node *node, const uint32_t *words) {
    for (uint32_t i = 0; i < words_of(map); i++) {
        node->words[i] = words[i];
    }
}

/* Puts a new node at its place: as a leaf, in place of `node`, above it, or beside it below a node without a value. */
static void place(const struct nicety_map *map, uint32_t *slot, struct lpm_node *new, uint32_t common) {
    struct lpm_node *node = AT(struct lpm_node, *slot);
    if (!node) {
        *slot = ADDRESS(new);
    } else if (node->bits == common && new->bits == common) {
        new->child[0] = node->child[0];
        new->child[1] = node->child[1];
        *slot = ADDRESS(new);
        give_node(map, node);
    } else if (new->bits == common) {
        new->child[bit(node->words, common)] = ADDRESS(node);
        *slot = ADDRESS(new);
    } else {
        struct lpm_node *fork = take_node(map);
        fork->bits = common;
        fork->has_value = 0;
        copy_words(map, fork, node->words);
        fork->child[bit(new->words, common)] = ADDRESS(new);
        fork->child[bit(node->words, common)] = ADDRESS(node);
        *slot = ADDRESS(fork);
    }
}

static int update_locked(const struct nicety_map *map, const struct lpm_key *key, const uint8_t *value,
                         uint32_t flags) {
    struct map_head *head = map_head(map);
    uint32_t *slot = &head->first, common = 0;
    struct lpm_node *node;
    while ((node = AT(struct lpm_node, *slot))) {
        common = common_bits(node->words, key->words, node->bits < key->bits ? node->bits : key->bits);
        if (common != node->bits || node->bits == key->bits) {
            break;
        }
        slot = &node->child[bit(key->words, node->bits)];
    }
    const bool present = node && node->bits == key->bits && common == key->bits && node->has_value;
    const int result = check_update(flags, present);
    if (result) {
        return result;
    }
    if (!present && head->count == map->max_entries) {
        head->failed++;
        return -ENOSPC;
    }
    struct lpm_node *new = take_node(map);
    new->bits = key->bits;
    new->has_value = 1;
    copy_words(map, new, key->words);
    copy_bytes(values_of(map, new), value, map->value_size);
    head->count += !present;
    place(map, slot, new, common);
    return 0;
}

int lpm_update(const struct nicety_map *map, const void *bytes, const uint8_t *value, uint32_t flags) {
    struct lpm_key key;
    read_key(map, bytes, &key);
    if (flags > MAP_PRESENT || key.bits > 8 * data_bytes(map)) {
        return -EINVAL;
    }
    begin_change(map_head(map));
    const int result = update_locked(map, &key, value, flags);
    end_change(map_head(map));
    return result;
}

static int delete_locked(const struct nicety_map *map, const struct lpm_key *key) {
    struct map_head *head = map_head(map);
    uint32_t *slot = &head->first, *above = NULL;
    struct lpm_node *node;
    while ((node = AT(struct lpm_node, *slot))) {
        if (node->bits > key->bits || !same_bits(node->words, key->words, node->bits)) {
            return -ENOENT;
        }
        if (node->bits == key->bits) {
            break;
        }
        above = slot;
        slot = &node->child[bit(key->words, node->bits)];
    }
    if (!node || !node->has_value) {
        return -ENOENT;
    }
    head->count--;
    if (node->child[0] && node->child[1]) {
        node->has_value = 0;
        return 0;
    }
    struct lpm_node *parent = above ? AT(struct lpm_node, *above) : NULL;
    if (parent && !parent->has_value && !node->child[0] && !node->child[1]) {
        *above = parent->child[0] == ADDRESS(node) ? parent->child[1] : parent->child[0];
        give_node(map, parent);
    } else {
        *slot = node->child[0] ? node->child[0] : node->child[1];
    }
    give_node(map, node);
    return 0;
}

int lpm_delete(const struct nicety_map *map, const void *bytes) {
    struct lpm_key key;
    read_key(map, bytes, &key);
    if (key.bits > 8 * data_bytes(map)) {
        return -EINVAL;
    }
    begin_change(map_head(map));
    const int result = delete_locked(map, &key);
    end_change(map_head(map));
    return result;
}

/* Children come before their parent, as in Linux. Only a host walks a trie, and gives it a deep stack. */
static uint64_t walk(const struct nicety_map *map, uint32_t address, map_visitor visit, void *context) {
    struct lpm_node *node = AT(struct lpm_node, address);
    if (!node) {
        return 0;
    }
    const uint64_t below = walk(map, node->child[0], visit, context) + walk(map, node->child[1], visit, context);
    if (!node->has_value) {
        return below;
    }
    uint8_t key[4 + 4 * MOST_WORDS];
    copy_bytes(key, &node->bits, 4);
    for (uint32_t at = 0; at < data_bytes(map); at++) {
        key[4 + at] = (uint8_t)(node->words[at / 4] >> (24 - 8 * (at % 4)));
    }
    visit(map, key, values_of(map, node), context);
    return below + 1;
}

uint64_t lpm_walk(const struct nicety_map *map, map_visitor visit, void *context) {
    return walk(map, map_head(map)->first, visit, context);
}
