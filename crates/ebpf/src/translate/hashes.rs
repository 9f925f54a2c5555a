//! Lookups in hashes in place: keys of a usual size that are aligned on the stack, in maps that the program names.
//!
//! The code is that of `lookup_sized` in `handlers/runtime/xdp/hash.c`, with the map's numbers in place of its descriptor. An entry has
//! its head, the node of an LRU map, the key and the value. The first entry of a bucket is the usual one, so that the others and
//! misses are behind the function.

use super::code::{Coder, line};
use super::demand::Part;
use super::fact::{Known, Note};
use super::ir::{Function, Ins, Kind, Value};
use super::names;
use super::sites::{Chain, End, Rare};
use crate::card::Layout;
use crate::helper::Helper;
use crate::map::MapKind;
use crate::object::MapDefinition;

/// Bytes of an entry's head.
const HEAD: u32 = 8;
/// The byte of an LRU map's entry that tells of its use.
const REFERENCED: u32 = 17;
/// Constants of the runtime's hash functions.
const MIX64: u32 = 0x5bd1_e000;
const MIX32: u32 = 0x85eb_ca6b;
const BEGIN32: u32 = 0x9e37_79b9;
/// Registers of the key's words.
const KEY: [&str; 4] = ["a0", "a1", "a2", "a3"];
/// The register of the entry.
const ENTRY: &str = "a4";
/// Registers of the bucket's address and of its distance from the first bucket.
const BUCKET: &str = "a6";
const DISTANCE: &str = "a7";

/// Turns lookups into steps of their own.
pub(super) fn find(function: &mut Function, notes: &[Note], maps: &[MapDefinition]) {
    for (ins, note) in function.ins.iter_mut().zip(notes) {
        let [Known::Is(Value::Map(map)), Known::Is(Value::Frame(at)), ..] = note.arguments else { continue };
        if ins.kind == Kind::Helper(Helper::MapLookup as u32)
            && names::sized_lookup(maps, map, Known::Is(Value::Frame(at))).is_some()
        {
            let key = Value::Frame(at);
            *ins = Ins { kind: Kind::Hash { map }, dst: 0, a: key, b: Value::Const(0), to: 0 };
        }
    }
}

impl Coder<'_> {
    /// The address of a value of a hash, or 0.
    pub(super) fn hash(&mut self, map: u32, at: usize) {
        let Value::Frame(key) = self.function.ins[at].a else { return };
        let definition = &self.maps[map as usize];
        let part = self.behind[at][0];
        let high = (part == Part::Whole && !self.wide()).then(|| self.high[0]);
        // The place of a lock does not change where entries are.
        let Ok(layout) = Layout::of(definition, self.options.cpus, None) else { return };
        let [again, next, mark, marked, done, missed] = std::array::from_fn(|_| self.label());
        let (load, result) = (if self.wide() { "lwu" } else { "lw" }, self.low[0]);
        match self.wide() {
            true => self.hash_of_key64(key, definition.key_size),
            false => self.hash_of_key32(key, definition.key_size),
        }
        let short = if self.wide() { "w" } else { "" };
        line!(self, "srli{short} {DISTANCE}, t1, {}", layout.extra);
        line!(self, "slli {DISTANCE}, {DISTANCE}, 3");
        self.address("t1", &format!("{}+{}", names::memory(self.maps, map), layout.buckets));
        line!(self, "add {BUCKET}, {DISTANCE}, t1");
        line!(self, "{load} {ENTRY}, 4({BUCKET})");
        self.mark(&again);
        // Entries are behind all buckets. The mark behind the last one is smaller, and so is the 0 of an unused bucket.
        line!(self, "bgeu {BUCKET}, {ENTRY}, {missed}");
        self.compare_keys(key, (layout.key_at, definition.key_size), &next);
        if layout.key_at > HEAD {
            line!(self, "lbu t0, {REFERENCED}({ENTRY})");
        }
        line!(self, "addi {result}, {ENTRY}, {}", layout.value_at);
        if let Some(high) = high {
            line!(self, "li {high}, 0");
        }
        if layout.key_at > HEAD {
            line!(self, "beqz t0, {mark}");
            self.mark(&marked);
        }
        self.mark(&done);
        let chain = Chain { map, key, again, next, mark, marked, done, result, high };
        self.aborts.rare.push(Rare { label: missed, origin: at, end: End::Chain(chain) });
    }

    /// The place of a word of the key.
    fn key_place(&self, key: i32, word: u32) -> String {
        format!("{}(sp)", self.frame.end + key + 4 * word as i32)
    }

    /// Whether two words of the key are read at once.
    fn is_pair(&self, key: i32, (word, words): (u32, u32)) -> bool {
        self.wide() && word.is_multiple_of(2) && word + 1 < words && key % 8 == 0
    }

    /// The hash of a key, in t1 with any upper half. Pairs of words are in the register of the first for the comparison.
    fn hash_of_key64(&mut self, key: i32, bytes: u32) {
        let words = bytes / 4;
        line!(self, "li t0, {MIX64}");
        for word in (0..words).step_by(2) {
            let (first, second) = (KEY[word as usize], KEY[(word + 1).min(3) as usize]);
            let (low, high) = if self.is_pair(key, (word, words)) {
                line!(self, "ld {first}, {}", self.key_place(key, word));
                line!(self, "sext.w t2, {first}");
                line!(self, "srai {second}, {first}, 32");
                ("t2", Some(second))
            } else {
                line!(self, "lw {first}, {}", self.key_place(key, word));
                let has_second = word + 1 < words;
                if has_second {
                    line!(self, "lw {second}, {}", self.key_place(key, word + 1));
                }
                (first, has_second.then_some(second))
            };
            line!(self, "xor t2, {low}, t0");
            // A last word counts as one with 0 behind it.
            if let Some(high) = high {
                line!(self, "add a5, {high}, t0");
            }
            let factor = if high.is_some() { "a5" } else { "t0" };
            let sum = if word == 0 { "t1" } else { "t2" };
            line!(self, "mul {sum}, t2, {factor}");
            if word > 0 {
                line!(self, "add t1, t1, t2");
            }
        }
        line!(self, "srli t2, t1, 32");
        line!(self, "xor t1, t1, t2");
    }

    /// The hash of a key, in t1.
    fn hash_of_key32(&mut self, key: i32, bytes: u32) {
        for word in 0..bytes / 4 {
            line!(self, "lw {}, {}", KEY[word as usize], self.key_place(key, word));
        }
        line!(self, "li t0, {}", MIX32 as i32);
        line!(self, "li t1, {}", (BEGIN32 ^ BEGIN32 >> 15) as i32);
        for word in 0..bytes / 4 {
            if word > 0 {
                line!(self, "srli t2, t1, 15");
                line!(self, "xor t1, t1, t2");
            }
            line!(self, "xor t1, t1, {}", KEY[word as usize]);
            line!(self, "mul t1, t1, t0");
        }
    }

    /// Goes on with the next entry where this one has another key. It reads two parts in front of their comparisons.
    fn compare_keys(&mut self, key: i32, (key_at, bytes): (u32, u32), next: &str) {
        let words = bytes / 4;
        let mut parts = Vec::new();
        let mut word = 0;
        while word < words {
            let pair = self.is_pair(key, (word, words));
            parts.push((word, if pair { "ld" } else { "lw" }));
            word += if pair { 2 } else { 1 };
        }
        for both in parts.chunks(2) {
            for ((word, load), to) in both.iter().zip(["t1", "t2"]) {
                line!(self, "{load} {to}, {}({ENTRY})", key_at + 4 * word);
            }
            for ((word, _), own) in both.iter().zip(["t1", "t2"]) {
                line!(self, "bne {own}, {}, {next}", KEY[*word as usize]);
            }
        }
    }

    /// The further entries of a lookup, and its miss.
    pub(super) fn end_chain(&mut self, chain: &Chain) {
        let Chain { map, key, again, next, mark, marked, done, result, high } = chain;
        let (load, moved, missed) = (if self.wide() { "lwu" } else { "lw" }, self.label(), self.label());
        line!(self, "beqz {ENTRY}, {missed}");
        // An entry that was moved meanwhile leads to the end of another chain.
        line!(self, "slli t1, {ENTRY}, 2");
        line!(self, "addi t1, t1, -4");
        line!(self, "bne t1, {DISTANCE}, {moved}");
        self.mark(&missed);
        line!(self, "li {result}, 0");
        if let Some(high) = high {
            line!(self, "li {high}, 0");
        }
        line!(self, "j {done}");
        self.mark(next);
        line!(self, "{load} {ENTRY}, 0({ENTRY})");
        line!(self, "j {again}");
        if self.maps[*map as usize].kind == MapKind::LruHash as u32 {
            self.mark(mark);
            line!(self, "li t0, 1");
            line!(self, "sb t0, {REFERENCED}({ENTRY})");
            line!(self, "j {marked}");
        }
        self.mark(&moved);
        self.address("a0", &names::map(self.maps, *map));
        // Arguments have 64 bits.
        let second = if self.wide() { "a1" } else { "a2" };
        line!(self, "addi {second}, sp, {}", self.frame.end + key);
        line!(self, "call {}", names::helper(Helper::MapLookup as u32));
        line!(self, "mv {result}, a0");
        if let Some(high) = high {
            line!(self, "li {high}, 0");
        }
        line!(self, "j {done}");
    }
}
