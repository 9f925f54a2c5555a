//! Lists of least recently used entries, with Linux's order of evictions (`kernel/bpf/bpf_lru_list.c`).
//!
//! A set of lists has active, inactive and free nodes. With a common set, each CPU takes free nodes in lots. It keeps its new nodes on
//! a pending list until it needs the next lot.

/// The largest lot, and the nodes that one scan of a common set looks at.
const LOT: u32 = 128;
/// The lot of a CPU's own set, and the nodes that one scan looks at.
const OWN_LOT: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Inactive,
    Free,
    LocalFree,
    Pending,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    prev: u32,
    place: Place,
    referenced: bool,
    cpu: u32,
}

/// A set of lists. Heads of lists are nodes.
#[derive(Clone, Debug)]
struct Set {
    active: u32,
    inactive: u32,
    free: u32,
    counts: [usize; 2],
    /// The next node that the rotation of inactive nodes looks at.
    rotation: u32,
}

/// The lists of a map.
#[derive(Clone, Debug)]
pub(crate) struct Lru {
    nodes: Vec<Node>,
    sets: Vec<Set>,
    /// Heads of each CPU's free and pending nodes, with a common set.
    locals: Vec<(u32, u32)>,
    lot: u32,
    scans: u32,
}

impl Lru {
    pub(crate) fn new(entries: u32, cpus: u32, common: bool) -> Lru {
        let mut lru = Lru {
            nodes: Vec::new(),
            sets: Vec::new(),
            locals: Vec::new(),
            lot: if common { (entries / cpus / 2).clamp(1, LOT) } else { OWN_LOT },
            scans: if common { LOT } else { OWN_LOT },
        };
        for entry in 0..entries {
            lru.nodes.push(Node { next: entry, prev: entry, place: Place::Free, referenced: false, cpu: 0 });
        }
        for _ in 0..if common { 1 } else { cpus } {
            let (active, inactive, free) = (lru.head(), lru.head(), lru.head());
            lru.sets.push(Set { active, inactive, free, counts: [0, 0], rotation: inactive });
        }
        if common {
            lru.locals = (0..cpus).map(|_| (lru.head(), lru.head())).collect();
        }
        let each = entries / lru.sets.len() as u32;
        for entry in (0..entries).rev() {
            let set = entry.checked_div(each).unwrap_or(0).min(lru.sets.len() as u32 - 1);
            lru.nodes[entry as usize].cpu = set;
            let free = lru.sets[set as usize].free;
            lru.add(free, entry);
        }
        lru
    }

    fn head(&mut self) -> u32 {
        let at = self.nodes.len() as u32;
        self.nodes.push(Node { next: at, prev: at, place: Place::Free, referenced: false, cpu: 0 });
        at
    }

    fn next(&self, node: u32) -> u32 {
        self.nodes[node as usize].next
    }

    fn prev(&self, node: u32) -> u32 {
        self.nodes[node as usize].prev
    }

    fn add(&mut self, head: u32, node: u32) {
        let next = self.next(head);
        self.nodes[node as usize].next = next;
        self.nodes[node as usize].prev = head;
        self.nodes[next as usize].prev = node;
        self.nodes[head as usize].next = node;
    }

    fn unlink(&mut self, node: u32) {
        let (next, prev) = (self.next(node), self.prev(node));
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
    }

    fn shift(&mut self, node: u32, head: u32, place: Place) {
        self.unlink(node);
        self.add(head, node);
        self.nodes[node as usize].place = place;
    }

    fn is_empty(&self, head: u32) -> bool {
        self.next(head) == head
    }

    /// Marks an entry as used.
    pub(crate) fn mark(&mut self, entry: u32) {
        self.nodes[entry as usize].referenced = true;
    }

    /// Takes an entry for a CPU. Entries that had a key and lose it are put into `evicted`.
    pub(crate) fn take(&mut self, cpu: u32, evicted: &mut Vec<u32>) -> Option<u32> {
        if self.locals.is_empty() {
            return self.take_own(cpu, evicted);
        }
        let (free, pending) = self.locals[cpu as usize];
        if self.is_empty(free) {
            self.refill(cpu, evicted);
        }
        let node = if self.is_empty(free) { self.steal(cpu, evicted)? } else { self.next(free) };
        self.nodes[node as usize].referenced = false;
        self.nodes[node as usize].cpu = cpu;
        self.shift(node, pending, Place::Pending);
        Some(node)
    }

    fn take_own(&mut self, cpu: u32, evicted: &mut Vec<u32>) -> Option<u32> {
        let set = cpu as usize;
        self.rotate(set);
        let free = self.sets[set].free;
        if self.is_empty(free) {
            self.shrink(set, OWN_LOT, free, Place::Free, evicted);
        }
        if self.is_empty(free) {
            return None;
        }
        let node = self.next(free);
        self.move_to(set, node, Place::Inactive);
        Some(node)
    }

    /// Gives an entry back.
    pub(crate) fn give_back(&mut self, entry: u32) {
        let Node { place, cpu, .. } = self.nodes[entry as usize];
        match place {
            Place::Pending => {
                self.nodes[entry as usize].referenced = false;
                let (free, _) = self.locals[cpu as usize];
                self.shift(entry, free, Place::LocalFree);
            }
            Place::LocalFree | Place::Free => {}
            _ if self.locals.is_empty() => self.move_to(cpu as usize, entry, Place::Free),
            _ => self.move_to(0, entry, Place::Free),
        }
    }

    /// Moves pending nodes to the common set, and takes a lot of free ones.
    fn refill(&mut self, cpu: u32, evicted: &mut Vec<u32>) {
        let (local, pending) = self.locals[cpu as usize];
        let mut node = self.prev(pending);
        while node != pending {
            let before = self.prev(node);
            let place = if self.nodes[node as usize].referenced { Place::Active } else { Place::Inactive };
            self.move_to(0, node, place);
            node = before;
        }
        self.rotate(0);
        let mut taken = 0;
        let free = self.sets[0].free;
        while taken < self.lot && !self.is_empty(free) {
            let node = self.next(free);
            self.shift(node, local, Place::LocalFree);
            taken += 1;
        }
        if taken < self.lot {
            self.shrink(0, self.lot - taken, local, Place::LocalFree, evicted);
        }
    }

    /// Takes a free or pending node of another CPU.
    fn steal(&mut self, cpu: u32, evicted: &mut Vec<u32>) -> Option<u32> {
        let cpus = self.locals.len() as u32;
        // Linux goes on from where it stole last; with one inserting CPU the order is the same.
        for other in (0..cpus).map(|step| (cpu + step) % cpus) {
            let (free, pending) = self.locals[other as usize];
            if !self.is_empty(free) {
                return Some(self.next(free));
            }
            for force in [false, true] {
                let mut node = self.prev(pending);
                while node != pending {
                    if force || !self.nodes[node as usize].referenced {
                        evicted.push(node);
                        return Some(node);
                    }
                    node = self.prev(node);
                }
            }
        }
        None
    }

    fn count(&mut self, set: usize, place: Place) -> Option<&mut usize> {
        match place {
            Place::Active => Some(&mut self.sets[set].counts[0]),
            Place::Inactive => Some(&mut self.sets[set].counts[1]),
            _ => None,
        }
    }

    /// Moves a node between lists of a set, or into it. The mark goes.
    fn move_to(&mut self, set: usize, node: u32, place: Place) {
        let head = match place {
            Place::Active => self.sets[set].active,
            Place::Inactive => self.sets[set].inactive,
            _ => self.sets[set].free,
        };
        self.move_between(set, node, head, place);
        self.nodes[node as usize].referenced = false;
    }

    fn move_between(&mut self, set: usize, node: u32, head: u32, place: Place) {
        if self.sets[set].rotation == node {
            self.sets[set].rotation = self.prev(node);
        }
        let old = self.nodes[node as usize].place;
        self.count(set, old).into_iter().for_each(|count| *count -= 1);
        self.count(set, place).into_iter().for_each(|count| *count += 1);
        self.shift(node, head, place);
    }

    fn rotate(&mut self, set: usize) {
        let [active, inactive] = self.sets[set].counts;
        if inactive < active {
            self.rotate_active(set);
        }
        self.rotate_inactive(set);
    }

    fn rotate_active(&mut self, set: usize) {
        let head = self.sets[set].active;
        let first = self.next(head);
        let mut node = self.prev(head);
        for _ in 0..self.scans {
            if node == head {
                break;
            }
            let before = self.prev(node);
            let place = if self.nodes[node as usize].referenced { Place::Active } else { Place::Inactive };
            self.move_to(set, node, place);
            if node == first {
                break;
            }
            node = before;
        }
    }

    fn rotate_inactive(&mut self, set: usize) {
        let head = self.sets[set].inactive;
        if self.is_empty(head) {
            return;
        }
        let mut last = self.next(self.sets[set].rotation);
        if last == head {
            last = self.next(last);
        }
        let (mut node, mut next, mut scanned) = (self.sets[set].rotation, head, 0);
        while scanned < self.scans {
            if node == head {
                node = self.prev(node);
                continue;
            }
            next = self.prev(node);
            if self.nodes[node as usize].referenced {
                self.move_to(set, node, Place::Active);
            }
            if node == last {
                break;
            }
            node = next;
            scanned += 1;
        }
        self.sets[set].rotation = next;
    }

    /// Frees up to `wanted` inactive nodes without a mark, or else one node.
    fn shrink(&mut self, set: usize, wanted: u32, to: u32, place: Place, evicted: &mut Vec<u32>) {
        let head = self.sets[set].inactive;
        let (mut freed, mut node) = (0, self.prev(head));
        for _ in 0..self.scans {
            if node == head {
                break;
            }
            let before = self.prev(node);
            if self.nodes[node as usize].referenced {
                self.move_to(set, node, Place::Active);
            } else {
                self.move_between(set, node, to, place);
                evicted.push(node);
                freed += 1;
                if freed == wanted {
                    break;
                }
            }
            node = before;
        }
        if freed > 0 {
            return;
        }
        let head = if self.is_empty(head) { self.sets[set].active } else { head };
        let node = self.prev(head);
        if node != head {
            self.move_between(set, node, to, place);
            evicted.push(node);
        }
    }
}
