//! Seeds of the fuzz targets, and random edits of them.
//!
//! Random bytes end at the first check of a format. So a target begins with a valid file, a *seed*, and changes it.

use bolero::TypeGenerator;
use std::fs;
use std::path::Path;

/// The longest changed file.
const MOST_BYTES: usize = 1 << 16;

/// One change of a file. Positions are taken modulo its length.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Edit {
    /// Set a byte.
    Set(u16, u8),
    /// Flip a bit.
    Flip(u16, u8),
    /// Set four bytes, little-endian: a length or an offset.
    Word(u16, u32),
    /// Set four bytes to a number at a limit.
    Limit(u16, u8),
    /// Insert a byte.
    Insert(u16, u8),
    /// Remove bytes.
    Remove(u16, u8),
    /// Copy bytes from one place to another, in front of what is there.
    Copy(u16, u8, u16),
    /// Cut the rest off.
    Truncate(u16),
}

/// Numbers at which arithmetic of readers goes wrong.
const LIMITS: [u32; 8] = [0, 1, 0x7fff, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];

/// Changes a file in place.
pub fn edit(bytes: &mut Vec<u8>, edits: &[Edit]) {
    for &edit in edits {
        let length = bytes.len().max(1);
        let at = |position: u16| usize::from(position) % length;
        match edit {
            Edit::Set(position, value) => {
                let at = at(position);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
            Edit::Flip(position, bit) => {
                let at = at(position);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (bit % 8));
            }
            Edit::Word(position, value) => set(bytes, at(position), value),
            Edit::Limit(position, which) => {
                set(bytes, at(position), LIMITS[usize::from(which) % LIMITS.len()])
            }
            Edit::Insert(position, value) => bytes.insert(at(position), value),
            Edit::Remove(position, count) => {
                let from = at(position);
                bytes.drain(from..(from + usize::from(count)).min(bytes.len()));
            }
            Edit::Copy(position, count, to) => {
                let (from, to) = (at(position), at(to));
                let copied = bytes[from..(from + usize::from(count)).min(bytes.len())].to_vec();
                bytes.splice(to..to, copied);
            }
            Edit::Truncate(position) => bytes.truncate(at(position)),
        }
        bytes.truncate(MOST_BYTES);
    }
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(word) = bytes.get_mut(at..at + 4) {
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// The files of `seeds/NAME`, and others of the repository, by paths from this crate's folder; sorted by their paths.
///
/// # Panics
/// Where one cannot be read.
pub fn seeds(name: &str, others: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = fs::read_dir(root.join("seeds").join(name));
    let mut paths: Vec<_> = folder.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.extend(others.iter().map(|other| root.join(other)));
    paths.sort();
    assert!(!paths.is_empty(), "no seeds for {name}");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}
