//! The operands in memory of atomic instructions.

pub(crate) enum WordBytes<'a> {
    Mutable(&'a mut [u8]),
    Shared(&'a [u8]),
}

/// The extra cycles of atomic instructions on a word. LR has a load's.
#[derive(Clone, Copy)]
pub(crate) struct WordExtra {
    pub lr: u32,
    pub amo: u32,
    pub sc: u32,
}

/// The operand in memory of an atomic instruction.
pub(crate) struct Word<'a> {
    pub bytes: WordBytes<'a>,
    pub extra: WordExtra,
    /// Whether other cores can reach it.
    pub shared: bool,
}

impl Word<'_> {
    /// Its bytes, zero-extended.
    pub(crate) fn get(&self) -> u64 {
        let bytes: &[u8] = match &self.bytes {
            WordBytes::Mutable(bytes) => bytes,
            WordBytes::Shared(bytes) => bytes,
        };
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(value)
    }

    /// Sets it to the low bytes of `value`.
    pub(crate) fn set(&mut self, value: u64) {
        match &mut self.bytes {
            WordBytes::Mutable(bytes) => bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]),
            WordBytes::Shared(_) => unreachable!("a store to shared bytes is not permitted"),
        }
    }
}
