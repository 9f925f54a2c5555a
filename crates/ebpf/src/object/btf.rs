//! BTF: the types of a program, for maps, data and relocations.

use crate::error::ObjectError;

/// A type. Numbers of types are places in [`Btf::types`]; 0 is `void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The name, empty for a type without one.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Void,
    /// An integer.
    Int {
        /// Bytes.
        size: u32,
        /// Whether it has a sign.
        signed: bool,
        /// Whether it is true or false.
        boolean: bool,
    },
    /// A pointer.
    Pointer(u32),
    /// An array.
    Array {
        /// Type of the elements.
        element: u32,
        /// Number of elements.
        count: u32,
    },
    /// A structure or union.
    Composite {
        /// Bytes.
        size: u32,
        /// Members in their order.
        members: Vec<Member>,
        /// Whether it is a union.
        union: bool,
    },
    /// An enumeration.
    Enum {
        /// Bytes.
        size: u32,
        /// Whether values have a sign.
        signed: bool,
        /// Names and values.
        values: Vec<(String, i64)>,
    },
    /// A typedef, a qualifier (`volatile`, `const`, `restrict`) or a type tag, with the number of its type.
    Alias(u32),
    /// A structure without members.
    Forward,
    /// A function with its prototype.
    Function(u32),
    /// A prototype.
    Prototype,
    /// A variable.
    Variable(u32),
    /// Variables of a section.
    Section(Vec<Placed>),
    /// A floating-point number of some bytes.
    Float(u32),
    /// A tag of a declaration.
    Tag,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name, empty for an anonymous member.
    pub name: String,
    /// The type.
    pub type_id: u32,
    /// Bits from the structure's begin.
    pub bit: u32,
    /// Bits of a bit field, or 0.
    pub bits: u32,
}

/// A variable in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The variable.
    pub type_id: u32,
    /// Bytes from the section's begin.
    pub offset: u32,
}

/// The types of an object.
#[derive(Clone, Debug, Default)]
pub struct Btf {
    /// All types.
    pub types: Vec<Type>,
    pub(crate) strings: Vec<u8>,
}

/// The deepest nesting of types that is followed.
pub(crate) const DEEPEST: usize = 32;

fn malformed(problem: &str) -> ObjectError {
    ObjectError::malformed(format!(".BTF: {problem}"))
}

/// Reads numbers one after another.
pub(crate) struct Words<'b> {
    bytes: &'b [u8],
}

impl<'b> Words<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Words<'b> {
        Words { bytes }
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_le_bytes(*word))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }
}

/// A part of a section behind its header: `header` bytes, then `offset`.
pub(crate) fn part(section: &[u8], header: u32, offset: u32, size: u32) -> Option<&[u8]> {
    let begin = (header as usize).checked_add(offset as usize)?;
    section.get(begin..begin.checked_add(size as usize)?)
}

pub(crate) const MAGIC: u32 = 0x0001_eb9f;

impl Btf {
    /// Reads the section `.BTF`.
    ///
    /// # Errors
    /// The section is damaged.
    pub fn read(section: &[u8]) -> Result<Btf, ObjectError> {
        let mut words = Words::new(section);
        let header: Option<Vec<u32>> = (0..6).map(|_| words.u32()).collect();
        let Some(&[magic, header, type_offset, type_size, text_offset, text_size]) = header.as_deref() else {
            return Err(malformed("too short"));
        };
        if magic & 0xff_ffff != MAGIC {
            return Err(malformed("no BTF of version 1, little-endian"));
        }
        let types =
            part(section, header, type_offset, type_size).ok_or_else(|| malformed("types are cut off"))?;
        let strings =
            part(section, header, text_offset, text_size).ok_or_else(|| malformed("names are cut off"))?;
        let mut btf = Btf {
            types: vec![Type { name: "void".to_owned(), kind: Kind::Void }],
            strings: strings.to_vec(),
        };
        // Many names may be the tails of one long string.
        let mut budget = 16 * section.len() + 4096;
        let mut words = Words::new(types);
        while !words.is_empty() {
            let read =
                btf.one(&mut words).ok_or_else(|| malformed("a type is cut off or of an unknown kind"))?;
            budget = budget.checked_sub(read.weight()).ok_or_else(|| malformed("names overlap"))?;
            btf.types.push(read);
        }
        Ok(btf)
    }

    /// The text at a place, empty where there is none.
    pub(crate) fn text(&self, at: u32) -> &str {
        let bytes = self.strings.get(at as usize..).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        std::str::from_utf8(&bytes[..end]).unwrap_or_default()
    }

    fn one(&self, words: &mut Words<'_>) -> Option<Type> {
        let (name, info, size) = (words.u32()?, words.u32()?, words.u32()?);
        let count = (info & 0xffff) as usize;
        let flag = info >> 31 != 0;
        let kind = match (info >> 24) & 0x1f {
            1 => {
                let coding = (words.u32()? >> 24) & 0xf;
                Kind::Int { size, signed: coding & 1 != 0, boolean: coding & 4 != 0 }
            }
            2 => Kind::Pointer(size),
            3 => {
                let (element, _, count) = (words.u32()?, words.u32()?, words.u32()?);
                Kind::Array { element, count }
            }
            kind @ (4 | 5) => {
                let members = (0..count).map(|_| self.member(words, flag)).collect::<Option<_>>()?;
                Kind::Composite { size, members, union: kind == 5 }
            }
            6 => {
                let value = |words: &mut Words<'_>| {
                    let (name, value) = (words.u32()?, words.u32()?);
                    let value = if flag { i64::from(value as i32) } else { i64::from(value) };
                    Some((self.text(name).to_owned(), value))
                };
                let values = (0..count).map(|_| value(words)).collect::<Option<_>>()?;
                Kind::Enum { size, signed: flag, values }
            }
            7 => Kind::Forward,
            8..=11 | 18 => Kind::Alias(size),
            12 => Kind::Function(size),
            13 => {
                words.skip(8 * count)?;
                Kind::Prototype
            }
            14 => {
                words.u32()?;
                Kind::Variable(size)
            }
            15 => {
                let placed = |words: &mut Words<'_>| {
                    let (type_id, offset, _) = (words.u32()?, words.u32()?, words.u32()?);
                    Some(Placed { type_id, offset })
                };
                Kind::Section((0..count).map(|_| placed(words)).collect::<Option<_>>()?)
            }
            16 => Kind::Float(size),
            17 => {
                words.u32()?;
                Kind::Tag
            }
            19 => {
                let value = |words: &mut Words<'_>| {
                    let (name, low, high) = (words.u32()?, words.u32()?, words.u32()?);
                    Some((self.text(name).to_owned(), ((u64::from(high) << 32) | u64::from(low)) as i64))
                };
                let values = (0..count).map(|_| value(words)).collect::<Option<_>>()?;
                Kind::Enum { size, signed: flag, values }
            }
            _ => return None,
        };
        Some(Type { name: self.text(name).to_owned(), kind })
    }

    fn member(&self, words: &mut Words<'_>, bit_fields: bool) -> Option<Member> {
        let (name, type_id, bit) = (words.u32()?, words.u32()?, words.u32()?);
        let (bit, bits) = if bit_fields { (bit & 0xff_ffff, bit >> 24) } else { (bit, 0) };
        Some(Member { name: self.text(name).to_owned(), type_id, bit, bits })
    }

    /// The type without names for it, qualifiers and its variable.
    pub fn plain(&self, mut id: u32) -> Option<&Type> {
        for _ in 0..DEEPEST {
            let found = self.types.get(id as usize)?;
            match found.kind {
                Kind::Alias(next) | Kind::Variable(next) => id = next,
                _ => return Some(found),
            }
        }
        None
    }

    /// The kind of [`Btf::plain`].
    pub fn kind(&self, id: u32) -> Option<&Kind> {
        self.plain(id).map(|found| &found.kind)
    }

    /// The bytes of a value.
    pub fn size(&self, mut id: u32) -> Option<u32> {
        let mut factor: u32 = 1;
        for _ in 0..DEEPEST {
            let size = match self.kind(id)? {
                Kind::Array { element, count } => {
                    factor = factor.checked_mul(*count)?;
                    id = *element;
                    continue;
                }
                Kind::Int { size, .. } | Kind::Composite { size, .. } | Kind::Enum { size, .. } => *size,
                Kind::Float(size) => *size,
                Kind::Pointer(_) => 8,
                _ => return None,
            };
            return size.checked_mul(factor);
        }
        None
    }

    /// The members of a structure.
    pub fn members(&self, id: u32) -> Option<&[Member]> {
        match self.kind(id)? {
            Kind::Composite { members, .. } => Some(members),
            _ => None,
        }
    }

    /// The number of the section's list of variables.
    pub fn section(&self, name: &str) -> Option<u32> {
        let found = |t: &Type| t.name == name && matches!(t.kind, Kind::Section(_));
        self.types.iter().position(found).map(|at| at as u32)
    }
}

impl Type {
    /// Bytes of names.
    fn weight(&self) -> usize {
        let inner = match &self.kind {
            Kind::Composite { members, .. } => members.iter().map(|m| m.name.len()).sum(),
            Kind::Enum { values, .. } => values.iter().map(|(name, _)| name.len()).sum(),
            _ => 0,
        };
        self.name.len() + inner
    }
}
