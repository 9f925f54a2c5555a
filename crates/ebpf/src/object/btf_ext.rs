//! `.BTF.ext`: lines of instructions, and CO-RE relocations.

use super::btf::{Btf, MAGIC, Words, part};
use crate::error::ObjectError;
use std::collections::BTreeMap;
use std::fmt;

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file, as the compiler had it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", crate::error::printable(&self.file), self.line)
    }
}

/// A CO-RE relocation: an instruction with a fact about a type.
#[derive(Clone, Debug)]
pub(crate) struct CoreRelocation {
    pub type_id: u32,
    /// Members and elements, such as `0:1:2`.
    pub access: String,
    pub kind: u32,
}

/// Places of instructions, in bytes of a section, and facts of them, sorted.
pub(crate) type Facts<T> = BTreeMap<u64, T>;

/// The parts that are read, by the names of sections. A line's file is a place in the names.
#[derive(Default)]
pub(crate) struct BtfExt {
    pub lines: BTreeMap<String, Facts<(u32, u32)>>,
    pub core: BTreeMap<String, Facts<CoreRelocation>>,
}

fn malformed(problem: &str) -> ObjectError {
    ObjectError::malformed(format!(".BTF.ext: {problem}"))
}

impl BtfExt {
    pub(crate) fn read(section: &[u8], btf: &Btf) -> Result<BtfExt, ObjectError> {
        let mut words = Words::new(section);
        let header: Option<Vec<u32>> = (0..6).map(|_| words.u32()).collect();
        let Some(&[magic, header, _, _, lines, lines_size]) = header.as_deref() else {
            return Err(malformed("too short"));
        };
        if magic & 0xff_ffff != MAGIC {
            return Err(malformed("no BTF of version 1, little-endian"));
        }
        let mut ext = BtfExt::default();
        let cut = || malformed("a part is cut off");
        let found = part(section, header, lines, lines_size).ok_or_else(cut)?;
        let mut names = Names { btf, left: 16 * section.len() + 4096 };
        ext.lines = per_section(found, &mut names, |words, _| {
            let (file, _, place) = (words.u32()?, words.u32()?, words.u32()?);
            Some((file, place >> 10))
        })
        .ok_or_else(cut)?;
        // Older compilers write a shorter header.
        if header >= 32 {
            let (core, core_size) = words.u32().zip(words.u32()).ok_or_else(cut)?;
            let found = part(section, header, core, core_size).ok_or_else(cut)?;
            ext.core = per_section(found, &mut names, |words, names| {
                let (type_id, access, kind) = (words.u32()?, words.u32()?, words.u32()?);
                Some(CoreRelocation { type_id, access: names.text(access)?, kind })
            })
            .ok_or_else(cut)?;
        }
        Ok(ext)
    }
}

/// Texts of BTF, up to a number of bytes: damaged files name a long text often.
struct Names<'b> {
    btf: &'b Btf,
    left: usize,
}

impl Names<'_> {
    fn text(&mut self, at: u32) -> Option<String> {
        let text = self.btf.text(at);
        self.left = self.left.checked_sub(text.len())?;
        Some(text.to_owned())
    }
}

/// Reads records by section. Each begins with the instruction's byte, which `read` does not see.
fn per_section<T>(
    bytes: &[u8],
    names: &mut Names<'_>,
    read: impl Fn(&mut Words<'_>, &mut Names<'_>) -> Option<T>,
) -> Option<BTreeMap<String, Facts<T>>> {
    let mut all = BTreeMap::new();
    let mut words = Words::new(bytes);
    if words.is_empty() {
        return Some(all);
    }
    let record = words.u32()? as usize;
    while !words.is_empty() {
        let (name, count) = (words.u32()?, words.u32()?);
        let facts: &mut Facts<T> = all.entry(names.text(name)?).or_default();
        for _ in 0..count {
            let at = words.u32()?;
            facts.insert(u64::from(at), read(&mut words, names)?);
            words.skip(record.checked_sub(16)?)?;
        }
    }
    Some(all)
}
