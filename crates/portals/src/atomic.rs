//! Operators and types of atomic operations, and their arithmetic ('Atomic Operations', `ptl_op_t`, `ptl_datatype_t`).
//!
//! Values are little-endian, in memory and on the wire. An operation changes its items in order. Item updates of
//! different operations may interleave, as the specification allows.

use crate::error::Error;
use crate::named::named;
use std::cmp::Ordering;
use std::fmt;

named! {
    /// The new value of an item of the target (`ptl_op_t`). *Data* is the item in the message. The *operand* of a
    /// conditional or masked swap is a second item in the message.
    pub enum AtomicOp {
        /// The lesser of the target and the data; the target if either is a NaN.
        Min = "PTL_MIN",
        /// The greater of the target and the data; the target if either is a NaN.
        Max = "PTL_MAX",
        /// The sum; for integers, modulo two to the power of their width.
        Sum = "PTL_SUM",
        /// The product; for integers, modulo two to the power of their width.
        Prod = "PTL_PROD",
        /// One if the target or the data is not zero, else zero.
        Lor = "PTL_LOR",
        /// One if neither the target nor the data is zero, else zero.
        Land = "PTL_LAND",
        /// Bitwise or.
        Bor = "PTL_BOR",
        /// Bitwise and.
        Band = "PTL_BAND",
        /// One if exactly one of the target and the data is zero, else zero.
        Lxor = "PTL_LXOR",
        /// Bitwise exclusive or.
        Bxor = "PTL_BXOR",
        /// The data.
        Swap = "PTL_SWAP",
        /// The data if the operand equals the target.
        Cswap = "PTL_CSWAP",
        /// The data if the operand differs from the target.
        CswapNe = "PTL_CSWAP_NE",
        /// The data if the operand is at most the target.
        CswapLe = "PTL_CSWAP_LE",
        /// The data if the operand is less than the target.
        CswapLt = "PTL_CSWAP_LT",
        /// The data if the operand is at least the target.
        CswapGe = "PTL_CSWAP_GE",
        /// The data if the operand is greater than the target.
        CswapGt = "PTL_CSWAP_GT",
        /// The data's bits where the operand has ones, the target's elsewhere.
        Mswap = "PTL_MSWAP",
    }
}

named! {
    /// The type of an item (`ptl_datatype_t`). The specification's long double is missing, since its size depends on the host.
    pub enum Datatype {
        /// 8-bit signed integer.
        Int8 = "PTL_INT8_T",
        /// 8-bit unsigned integer.
        Uint8 = "PTL_UINT8_T",
        /// 16-bit signed integer.
        Int16 = "PTL_INT16_T",
        /// 16-bit unsigned integer.
        Uint16 = "PTL_UINT16_T",
        /// 32-bit signed integer.
        Int32 = "PTL_INT32_T",
        /// 32-bit unsigned integer.
        Uint32 = "PTL_UINT32_T",
        /// 64-bit signed integer.
        Int64 = "PTL_INT64_T",
        /// 64-bit unsigned integer.
        Uint64 = "PTL_UINT64_T",
        /// IEEE 754 single precision.
        Float = "PTL_FLOAT",
        /// IEEE 754 double precision.
        Double = "PTL_DOUBLE",
        /// Two single-precision numbers: real and imaginary part.
        FloatComplex = "PTL_FLOAT_COMPLEX",
        /// Two double-precision numbers: real and imaginary part.
        DoubleComplex = "PTL_DOUBLE_COMPLEX",
    }
}

impl AtomicOp {
    /// Returns whether this is an operator of `PtlSwap`. All others are operators of `PtlAtomic` and `PtlFetchAtomic`.
    pub const fn is_swap(self) -> bool {
        self as u8 >= AtomicOp::Swap as u8
    }

    /// Returns whether the operator takes an operand beside the data. Such an operator works on only one item.
    pub const fn has_operand(self) -> bool {
        self as u8 > AtomicOp::Swap as u8
    }

    const fn orders(self) -> bool {
        use AtomicOp::*;
        matches!(self, Min | Max | CswapLe | CswapLt | CswapGe | CswapGt)
    }

    const fn takes_bits(self) -> bool {
        use AtomicOp::*;
        matches!(self, Lor | Land | Bor | Band | Lxor | Bxor | Mswap)
    }
}

impl Datatype {
    /// Returns the size of an item in bytes.
    pub const fn size(self) -> usize {
        use Datatype::*;
        match self {
            Int8 | Uint8 => 1,
            Int16 | Uint16 => 2,
            Int32 | Uint32 | Float => 4,
            Int64 | Uint64 | Double | FloatComplex => 8,
            DoubleComplex => 16,
        }
    }

    const fn is_integer(self) -> bool {
        (self as u8) < Datatype::Float as u8
    }

    const fn is_complex(self) -> bool {
        matches!(self, Datatype::FloatComplex | Datatype::DoubleComplex)
    }
}

/// A valid pair of operator and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atomic {
    op: AtomicOp,
    datatype: Datatype,
}

impl Atomic {
    /// Returns the pair of operator and type. Logical and bitwise operators work only on integers. Operators that order
    /// values do not work on complex numbers.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] for an invalid pair.
    pub const fn new(op: AtomicOp, datatype: Datatype) -> Result<Atomic, Error> {
        if op.takes_bits() && !datatype.is_integer() {
            return Err(Error::ArgInvalid("logical, bitwise and masked operators work on integers only"));
        }
        if op.orders() && datatype.is_complex() {
            return Err(Error::ArgInvalid(
                "complex numbers have no order; use SUM, PROD, SWAP, CSWAP or CSWAP_NE",
            ));
        }
        Ok(Atomic { op, datatype })
    }

    /// Returns the operator.
    pub const fn op(self) -> AtomicOp {
        self.op
    }

    /// Returns the type.
    pub const fn datatype(self) -> Datatype {
        self.datatype
    }

    /// Returns the number of operand bytes in the message before the data: zero, or the size of one item.
    pub const fn operand_bytes(self) -> usize {
        if self.op.has_operand() { self.datatype.size() } else { 0 }
    }

    /// Returns whether `length` bytes are whole items, and at most one item if the operator takes an operand.
    pub const fn takes_length(self, length: u64) -> bool {
        let size = self.datatype.size() as u64;
        if self.op.has_operand() { length == size } else { length.is_multiple_of(size) }
    }

    /// Applies the operation to `target`, which has the same number of whole items as `data`. `operand` is one item if
    /// [`AtomicOp::has_operand`], and empty otherwise.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] if the lengths are invalid. The target is then unchanged.
    pub fn apply(self, target: &mut [u8], data: &[u8], operand: &[u8]) -> Result<(), Error> {
        if target.len() != data.len() {
            return Err(Error::ArgInvalid("target and data of an atomic operation are of one length"));
        }
        // A message truncated to no bytes has no effect.
        if data.is_empty() {
            return Ok(());
        }
        if !self.takes_length(data.len() as u64) {
            return Err(Error::ArgInvalid(LENGTH));
        }
        if operand.len() != self.operand_bytes() {
            return Err(Error::ArgInvalid(OPERAND));
        }
        match self.datatype {
            Datatype::Int8 => each::<i8, 1>(self.op, target, data, operand),
            Datatype::Uint8 => each::<u8, 1>(self.op, target, data, operand),
            Datatype::Int16 => each::<i16, 2>(self.op, target, data, operand),
            Datatype::Uint16 => each::<u16, 2>(self.op, target, data, operand),
            Datatype::Int32 => each::<i32, 4>(self.op, target, data, operand),
            Datatype::Uint32 => each::<u32, 4>(self.op, target, data, operand),
            Datatype::Int64 => each::<i64, 8>(self.op, target, data, operand),
            Datatype::Uint64 => each::<u64, 8>(self.op, target, data, operand),
            Datatype::Float => each::<f32, 4>(self.op, target, data, operand),
            Datatype::Double => each::<f64, 8>(self.op, target, data, operand),
            Datatype::FloatComplex => each::<Complex<f32>, 8>(self.op, target, data, operand),
            Datatype::DoubleComplex => each::<Complex<f64>, 16>(self.op, target, data, operand),
        }
        Ok(())
    }
}

pub(crate) const LENGTH: &str =
    "an atomic operation takes whole items of its type, and a conditional or masked swap exactly one";
pub(crate) const OPERAND: &str =
    "conditional and masked swaps take an operand of one item, and no other operator takes one";

/// The operand of a conditional or masked swap: the bytes of one item, or none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Operand {
    bytes: [u8; 16],
    len: u8,
}

impl Operand {
    /// No operand.
    pub const NONE: Operand = Operand { bytes: [0; 16], len: 0 };

    /// Returns the operand with the given little-endian bytes of an item.
    ///
    /// # Errors
    /// [`Error::ArgInvalid`] for more than 16 bytes, the largest item.
    pub fn new(bytes: &[u8]) -> Result<Operand, Error> {
        let mut operand = Operand { len: bytes.len() as u8, ..Operand::NONE };
        let room = operand.bytes.get_mut(..bytes.len()).ok_or(Error::ArgInvalid(OPERAND))?;
        room.copy_from_slice(bytes);
        Ok(operand)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({:02x?})", self.as_slice())
    }
}

/// A type that operators work on.
trait Item<const N: usize>: Copy {
    fn read(bytes: [u8; N]) -> Self;
    fn write(self) -> [u8; N];
    /// Applies an operator of `PtlAtomic`. An operator that is invalid for the type leaves the target unchanged, but
    /// [`Atomic`] excludes such pairs.
    fn combine(self, op: AtomicOp, data: Self) -> Self;
    /// Compares two items. If the type has no order, returns `None` for different values.
    fn compare(self, other: Self) -> Option<Ordering>;
    fn mask(self, data: Self, mask: Self) -> Self;
}

fn each<T: Item<N>, const N: usize>(op: AtomicOp, target: &mut [u8], data: &[u8], operand: &[u8]) {
    let (targets, data) = (target.as_chunks_mut::<N>().0, data.as_chunks::<N>().0);
    for (bytes, data) in targets.iter_mut().zip(data) {
        let (old, data) = (T::read(*bytes), T::read(*data));
        let operand = || T::read(*operand.first_chunk().expect("the caller has looked at its length"));
        let replaced = |condition: fn(Option<Ordering>) -> bool| {
            if condition(operand().compare(old)) { data } else { old }
        };
        let new = match op {
            AtomicOp::Swap => data,
            AtomicOp::Cswap => replaced(|order| order == Some(Ordering::Equal)),
            AtomicOp::CswapNe => replaced(|order| order != Some(Ordering::Equal)),
            AtomicOp::CswapLe => replaced(|order| order.is_some_and(Ordering::is_le)),
            AtomicOp::CswapLt => replaced(|order| order.is_some_and(Ordering::is_lt)),
            AtomicOp::CswapGe => replaced(|order| order.is_some_and(Ordering::is_ge)),
            AtomicOp::CswapGt => replaced(|order| order.is_some_and(Ordering::is_gt)),
            AtomicOp::Mswap => old.mask(data, operand()),
            combining => old.combine(combining, data),
        };
        *bytes = new.write();
    }
}

macro_rules! integers {
    ($($type:ty: $bytes:literal,)*) => {$(
        impl Item<$bytes> for $type {
            fn read(bytes: [u8; $bytes]) -> Self { <$type>::from_le_bytes(bytes) }
            fn write(self) -> [u8; $bytes] { self.to_le_bytes() }
            fn combine(self, op: AtomicOp, data: Self) -> Self {
                let (truth, other) = (self != 0, data != 0);
                match op {
                    AtomicOp::Min => self.min(data),
                    AtomicOp::Max => self.max(data),
                    AtomicOp::Sum => self.wrapping_add(data),
                    AtomicOp::Prod => self.wrapping_mul(data),
                    AtomicOp::Lor => (truth || other).into(),
                    AtomicOp::Land => (truth && other).into(),
                    AtomicOp::Lxor => (truth != other).into(),
                    AtomicOp::Bor => self | data,
                    AtomicOp::Band => self & data,
                    AtomicOp::Bxor => self ^ data,
                    _ => self,
                }
            }
            fn compare(self, other: Self) -> Option<Ordering> { Some(self.cmp(&other)) }
            fn mask(self, data: Self, mask: Self) -> Self { self & !mask | data & mask }
        }
    )*};
}

integers! { i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, i64: 8, u64: 8, }

macro_rules! floats {
    ($($type:ty: $bytes:literal,)*) => {$(
        impl Item<$bytes> for $type {
            fn read(bytes: [u8; $bytes]) -> Self { <$type>::from_le_bytes(bytes) }
            fn write(self) -> [u8; $bytes] { self.to_le_bytes() }
            fn combine(self, op: AtomicOp, data: Self) -> Self {
                match op {
                    AtomicOp::Min if data < self => data,
                    AtomicOp::Max if data > self => data,
                    AtomicOp::Sum => self + data,
                    AtomicOp::Prod => self * data,
                    _ => self,
                }
            }
            fn compare(self, other: Self) -> Option<Ordering> { self.partial_cmp(&other) }
            fn mask(self, _: Self, _: Self) -> Self { self }
        }

        impl Item<{ 2 * $bytes }> for Complex<$type> {
            fn read(bytes: [u8; 2 * $bytes]) -> Self {
                let part = |at: usize| {
                    <$type>::from_le_bytes(*bytes[at..].first_chunk().expect("half an item"))
                };
                Complex(part(0), part($bytes))
            }
            fn write(self) -> [u8; 2 * $bytes] {
                let mut bytes = [0; 2 * $bytes];
                bytes[..$bytes].copy_from_slice(&self.0.to_le_bytes());
                bytes[$bytes..].copy_from_slice(&self.1.to_le_bytes());
                bytes
            }
            fn combine(self, op: AtomicOp, data: Self) -> Self {
                let (Complex(a, b), Complex(c, d)) = (self, data);
                match op {
                    AtomicOp::Sum => Complex(a + c, b + d),
                    AtomicOp::Prod => Complex(a * c - b * d, a * d + b * c),
                    _ => self,
                }
            }
            fn compare(self, other: Self) -> Option<Ordering> {
                (self.0 == other.0 && self.1 == other.1).then_some(Ordering::Equal)
            }
            fn mask(self, _: Self, _: Self) -> Self { self }
        }
    )*};
}

#[derive(Clone, Copy)]
struct Complex<T>(T, T);

floats! { f32: 4, f64: 8, }
