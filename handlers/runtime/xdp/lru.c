/* lru.c: lists of least recently used entries, in Linux's order of evictions (kernel/bpf/bpf_lru_list.c).
 *
 * A set of lists has active, inactive and free nodes. With a common set, each core takes free nodes in lots. It keeps its new nodes on
 * a pending list until it needs the next lot. Locks are taken in this order: of a core, of a set, of a bucket. */
#include "map.h"

/* The largest lot, and the nodes that one scan of a common set looks at. */
#define LOT 128u
/* The lot of a core's own set, and the nodes that one scan looks at. */
#define OWN_LOT 4u

enum { ACTIVE, INACTIVE, FREE, LOCAL_FREE, PENDING };

struct lru_set {
    struct lru_node active, inactive, free;
    uint32_t counts[2];
    uint32_t rotation;      /* the next node that the rotation of inactive nodes looks at */
    uint32_t lock;
};

/* The free and pending nodes of a core with a common set. */
struct lru_local {
    struct lru_node free, pending;
    uint32_t lock, next_steal;
    uint32_t unused[2];
};

_Static_assert(sizeof(struct lru_set) == 64 && sizeof(struct lru_local) == 48, "crates/ebpf/src/card has these sizes");

static bool is_common(const struct nicety_map *map) { return !(map->flags & MAP_NO_COMMON_LRU); }

static struct lru_set *set_of(const struct nicety_map *map, uint32_t number) {
    return AT(struct lru_set, map->memory + map->cores) + (is_common(map) ? 0 : number);
}

static struct lru_local *local_of(const struct nicety_map *map, uint32_t cpu) {
    return AT(struct lru_local, map->memory + map->cores + sizeof(struct lru_set)) + cpu;
}

static struct lru_node *node_of(struct map_entry *entry) { return (struct lru_node *)(entry + 1); }
static struct map_entry *entry_of(struct lru_node *node) { return (struct map_entry *)node - 1; }
static struct lru_node *next_of(const struct lru_node *node) { return AT(struct lru_node, node->next); }
static struct lru_node *prev_of(const struct lru_node *node) { return AT(struct lru_node, node->prev); }
static bool is_empty(const struct lru_node *head) { return next_of(head) == head; }

static void make_head(struct lru_node *head) { head->next = head->prev = ADDRESS(head); }

static void add(struct lru_node *head, struct lru_node *node) {
    struct lru_node *next = next_of(head);
    node->next = ADDRESS(next);
    node->prev = ADDRESS(head);
    next->prev = ADDRESS(node);
    head->next = ADDRESS(node);
}

static void shift(struct lru_node *node, struct lru_node *head, uint8_t place) {
    next_of(node)->prev = node->prev;
    prev_of(node)->next = node->next;
    add(head, node);
    node->place = place;
}

/* The lot of a core: with many cores, a common set of few entries is dealt out in small ones. */
static uint32_t lot_of(const struct nicety_map *map) {
    const uint32_t lot = map->max_entries / map->cpus / 2;
    return lot < 1 ? 1 : lot > LOT ? LOT : lot;
}

void lru_prepare(const struct nicety_map *map) {
    struct map_head *head = map_head(map);
    lock_word(&head->lock);
    if (!head->ready) {
        const uint32_t sets = is_common(map) ? 1 : map->cpus, each = map->max_entries / sets;
        for (uint32_t number = 0; number < sets; number++) {
            struct lru_set *set = set_of(map, number);
            make_head(&set->active);
            make_head(&set->inactive);
            make_head(&set->free);
            set->rotation = ADDRESS(&set->inactive);
        }
        for (uint32_t cpu = 0; is_common(map) && cpu < map->cpus; cpu++) {
            make_head(&local_of(map, cpu)->free);
            make_head(&local_of(map, cpu)->pending);
            local_of(map, cpu)->next_steal = cpu;
        }
        for (uint32_t number = map->max_entries; number-- > 0;) {
            const uint32_t address = map->memory + map->entries + number * map->entry_bytes;
            struct lru_node *node = node_of(AT(struct map_entry, address));
            const uint32_t set = each ? number / each : 0;
            node->cpu = (uint16_t)(set < sets ? set : sets - 1);
            node->place = FREE;
            add(&set_of(map, node->cpu)->free, node);
        }
        __atomic_store_n(&head->ready, 1, __ATOMIC_RELEASE);
    }
    unlock_word(&head->lock);
}

static void count_place(struct lru_set *set, uint8_t place, int change) {
    if (place <= INACTIVE) {
        set->counts[place] += (uint32_t)change;
    }
}

static void move_between(struct lru_set *set, struct lru_node *node, struct lru_node *head, uint8_t place) {
    if (set->rotation == ADDRESS(node)) {
        set->rotation = node->prev;
    }
    count_place(set, node->place, -1);
    count_place(set, place, 1);
    shift(node, head, place);
}

/* Moves a node between lists of a set, or into it. The mark goes. */
static void move_to(struct lru_set *set, struct lru_node *node, uint8_t place) {
    struct lru_node *head = place == ACTIVE ? &set->active : place == INACTIVE ? &set->inactive : &set->free;
    move_between(set, node, head, place);
    node->referenced = 0;
}

static void rotate_active(struct lru_set *set, uint32_t scans) {
    struct lru_node *head = &set->active, *first = next_of(head), *node = prev_of(head);
    for (uint32_t i = 0; i < scans && node != head; i++) {
        struct lru_node *before = prev_of(node);
        const bool last = node == first;
        move_to(set, node, node->referenced ? ACTIVE : INACTIVE);
        if (last) {
            break;
        }
        node = before;
    }
}

static void rotate_inactive(struct lru_set *set, uint32_t scans) {
    struct lru_node *head = &set->inactive;
    if (is_empty(head)) {
        return;
    }
    struct lru_node *node = AT(struct lru_node, set->rotation), *last = next_of(node), *next = head;
    if (last == head) {
        last = next_of(last);
    }
    for (uint32_t scanned = 0; scanned < scans;) {
        if (node == head) {
            node = prev_of(node);
            continue;
        }
        next = prev_of(node);
        const bool is_last = node == last;
        if (node->referenced) {
            move_to(set, node, ACTIVE);
        }
        if (is_last) {
            break;
        }
        node = next;
        scanned++;
    }
    set->rotation = ADDRESS(next);
}

static void rotate(struct lru_set *set, uint32_t scans) {
    if (set->counts[INACTIVE] < set->counts[ACTIVE]) {
        rotate_active(set, scans);
    }
    rotate_inactive(set, scans);
}

/* Frees up to `wanted` inactive nodes without a mark, or else one node. */
static void shrink(const struct nicety_map *map, struct lru_set *set, uint32_t wanted, struct lru_node *to,
                   uint8_t place, uint32_t scans) {
    struct lru_node *head = &set->inactive, *node = prev_of(head);
    uint32_t freed = 0;
    for (uint32_t i = 0; i < scans && node != head; i++) {
        struct lru_node *before = prev_of(node);
        if (node->referenced) {
            move_to(set, node, ACTIVE);
        } else if (hash_evict(map, entry_of(node))) {
            move_between(set, node, to, place);
            if (++freed == wanted) {
                break;
            }
        }
        node = before;
    }
    if (freed) {
        return;
    }
    head = is_empty(head) ? &set->active : head;
    for (node = prev_of(head); node != head; node = prev_of(node)) {
        if (hash_evict(map, entry_of(node))) {
            move_between(set, node, to, place);
            return;
        }
    }
}

/* Moves pending nodes to the common set, and takes a lot of free ones. */
static void refill(const struct nicety_map *map, struct lru_local *local) {
    struct lru_set *set = set_of(map, 0);
    const uint32_t lot = lot_of(map);
    lock_word(&set->lock);
    for (struct lru_node *node = prev_of(&local->pending); node != &local->pending;) {
        struct lru_node *before = prev_of(node);
        move_to(set, node, node->referenced ? ACTIVE : INACTIVE);
        node = before;
    }
    rotate(set, LOT);
    uint32_t taken = 0;
    for (; taken < lot && !is_empty(&set->free); taken++) {
        shift(next_of(&set->free), &local->free, LOCAL_FREE);
    }
    if (taken < lot) {
        shrink(map, set, lot - taken, &local->free, LOCAL_FREE, LOT);
    }
    unlock_word(&set->lock);
}

/* A free node of a core, or one of its pending nodes, which leaves its bucket. */
static struct lru_node *steal(const struct nicety_map *map, struct lru_local *local) {
    if (!is_empty(&local->free)) {
        return next_of(&local->free);
    }
    for (int force = 0; force < 2; force++) {
        for (struct lru_node *node = prev_of(&local->pending); node != &local->pending; node = prev_of(node)) {
            if ((force || !node->referenced) && hash_evict(map, entry_of(node))) {
                return node;
            }
        }
    }
    return NULL;
}

/* Takes a node off another core's lists, or null. */
static struct lru_node *steal_any(const struct nicety_map *map, uint32_t cpu) {
    struct lru_local *own = local_of(map, cpu);
    const uint32_t first = own->next_steal;
    uint32_t other = first;
    struct lru_node *node;
    do {
        struct lru_local *local = local_of(map, other);
        lock_word(&local->lock);
        node = steal(map, local);
        if (node) {
            next_of(node)->prev = node->prev;
            prev_of(node)->next = node->next;
            make_head(node);
        }
        unlock_word(&local->lock);
        other = other + 1 == map->cpus ? 0 : other + 1;
    } while (!node && other != first);
    own->next_steal = other;
    return node;
}

static void make_pending(struct lru_local *local, struct lru_node *node, uint32_t cpu, uint32_t hash) {
    entry_of(node)->hash = hash;
    node->referenced = 0;
    node->cpu = (uint16_t)cpu;
    shift(node, &local->pending, PENDING);
}

static struct lru_node *take_common(const struct nicety_map *map, uint32_t cpu, uint32_t hash) {
    struct lru_local *local = local_of(map, cpu);
    struct lru_node *node = NULL;
    lock_word(&local->lock);
    if (is_empty(&local->free)) {
        refill(map, local);
    }
    if (!is_empty(&local->free)) {
        node = next_of(&local->free);
        make_pending(local, node, cpu, hash);
    }
    unlock_word(&local->lock);
    if (node) {
        return node;
    }
    node = steal_any(map, cpu);
    if (node) {
        lock_word(&local->lock);
        make_pending(local, node, cpu, hash);
        unlock_word(&local->lock);
    }
    return node;
}

static struct lru_node *take_own(const struct nicety_map *map, uint32_t cpu, uint32_t hash) {
    struct lru_set *set = set_of(map, cpu);
    struct lru_node *node = NULL;
    lock_word(&set->lock);
    rotate(set, OWN_LOT);
    if (is_empty(&set->free)) {
        shrink(map, set, OWN_LOT, &set->free, FREE, OWN_LOT);
    }
    if (!is_empty(&set->free)) {
        node = next_of(&set->free);
        entry_of(node)->hash = hash;
        move_to(set, node, INACTIVE);
    }
    unlock_word(&set->lock);
    return node;
}

struct map_entry *lru_take(const struct nicety_map *map, uint32_t cpu, uint32_t hash) {
    struct map_head *head = map_head(map);
    if (!__atomic_load_n(&head->ready, __ATOMIC_ACQUIRE)) {
        lru_prepare(map);
    }
    struct lru_node *node = is_common(map) ? take_common(map, cpu, hash) : take_own(map, cpu, hash);
    if (!node) {
        __atomic_fetch_add(&head->failed, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    return entry_of(node);
}

void lru_give_back(const struct nicety_map *map, struct map_entry *entry) {
    struct lru_node *node = node_of(entry);
    if (node->place == FREE || node->place == LOCAL_FREE) {
        return;
    }
    if (node->place == PENDING) {
        struct lru_local *local = local_of(map, node->cpu);
        lock_word(&local->lock);
        const bool pending = node->place == PENDING;
        if (pending) {
            node->referenced = 0;
            shift(node, &local->free, LOCAL_FREE);
        }
        unlock_word(&local->lock);
        if (pending) {
            return;
        }
    }
    struct lru_set *set = set_of(map, node->cpu);
    lock_word(&set->lock);
    move_to(set, node, FREE);
    unlock_word(&set->lock);
}
