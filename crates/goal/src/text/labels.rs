//! The labels of operations in a rank. Dependencies name operations by their labels.
//!
//! A label of up to eight letters is its own key. For a longer label, the key is a hash, and a search also compares the letters.
//! All ranks use the same table. A stamp marks the places that belong to the current rank, so the table need not be cleared.

/// A place in the table: a label and its operation.
#[derive(Clone, Copy, Default)]
struct Place {
    key: u64,
    /// The start of a long label in the buffer of letters.
    from: u32,
    length: u32,
    stamp: u32,
    op: u32,
}

pub(super) struct Labels {
    /// The places of the table. Their number is a power of two, and at most half of them are in use.
    places: Vec<Place>,
    taken: usize,
    stamp: u32,
    letters: Vec<u8>,
}

const FEWEST: usize = 64;

/// Returns the key of a label. Labels have no zero bytes, so different short labels have different keys.
fn key_of(label: &[u8]) -> u64 {
    if label.len() <= 8 {
        let mut bytes = [0; 8];
        bytes[..label.len()].copy_from_slice(label);
        return u64::from_le_bytes(bytes);
    }
    label.chunks(8).fold(label.len() as u64, |sum, chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        (sum.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}

impl Labels {
    pub(super) fn new() -> Labels {
        Labels { places: vec![Place::default(); FEWEST], taken: 0, stamp: 1, letters: Vec::new() }
    }

    /// Removes all labels.
    pub(super) fn clear(&mut self) {
        self.taken = 0;
        self.letters.clear();
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.places.fill(Place::default());
            self.stamp = 1;
        }
    }

    /// Returns the place of a label, or the free place for it.
    fn find(&self, label: &[u8], key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let place = &self.places[at];
            let same = || {
                place.key == key
                    && (label.len() <= 8 && place.length == 0
                        || place.length as usize == label.len()
                            && &self.letters[place.from as usize..][..label.len()] == label)
            };
            if place.stamp != self.stamp || same() {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn get(&self, label: &[u8]) -> Option<u32> {
        let place = &self.places[self.find(label, key_of(label))];
        (place.stamp == self.stamp).then_some(place.op)
    }

    /// Gives an operation a label. Returns the operation that had this label before, if any. Returns `None` if the labels have
    /// too many letters in total.
    pub(super) fn insert(&mut self, label: &[u8], op: u32) -> Option<Option<u32>> {
        let key = key_of(label);
        let at = self.find(label, key);
        if self.places[at].stamp == self.stamp {
            return Some(Some(std::mem::replace(&mut self.places[at].op, op)));
        }
        let (from, length) = if label.len() <= 8 { (0, 0) } else { (self.letters.len(), label.len()) };
        self.letters.extend_from_slice(&label[..length]);
        u32::try_from(self.letters.len()).ok()?;
        self.places[at] = Place { key, from: from as u32, length: length as u32, stamp: self.stamp, op };
        self.taken += 1;
        if self.taken * 2 > self.places.len() {
            self.grow();
        }
        Some(None)
    }

    fn grow(&mut self) {
        let mut larger = vec![Place::default(); self.places.len() * 2];
        let mask = larger.len() - 1;
        for place in self.places.iter().filter(|place| place.stamp == self.stamp) {
            let mut at = (place.key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
            while larger[at].stamp == self.stamp {
                at = (at + 1) & mask;
            }
            larger[at] = *place;
        }
        self.places = larger;
    }
}
