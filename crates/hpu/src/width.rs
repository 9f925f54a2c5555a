//! The width of integer registers: 32 or 64 bits. The interpreter is the same source for both.

use std::ops::{BitAnd, BitOr, BitXor, Not};

/// The content of an integer register. Registers are kept in 64 bits; those of RV32 have zeros above.
pub(crate) trait Width:
    Copy + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// The same bits with a sign.
    type Signed: Copy + Ord;

    /// Whether it has 64 bits.
    const WIDE: bool;

    /// The content of a register.
    fn of(register: u64) -> Self;
    /// The same, as it is kept.
    fn kept(self) -> u64;
    /// An immediate, a word's result or a loaded word: sign-extended.
    fn extended(word: u32) -> Self;
    /// The low 32 bits.
    fn low(self) -> u32;
    fn signed(self) -> Self::Signed;
    /// A number of bits from another word: itself, zero-extended.
    fn plain(word: u32) -> Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Shifts take the low five or six bits of their amount.
    fn left(self, amount: u32) -> Self;
    fn right(self, amount: u32) -> Self;
    fn right_signed(self, amount: u32) -> Self;
    fn rotated_left(self, amount: u32) -> Self;

    fn times(self, other: Self) -> Self;
    /// The high halves of products: of signed numbers, of a signed and an unsigned one, of unsigned ones.
    fn high(self, other: Self) -> Self;
    fn high_mixed(self, other: Self) -> Self;
    fn high_unsigned(self, other: Self) -> Self;
    /// Division as RISC-V defines it: no trap for zero or overflow.
    fn quotient(self, divisor: Self) -> Self;
    fn quotient_unsigned(self, divisor: Self) -> Self;
    fn remainder(self, divisor: Self) -> Self;
    fn remainder_unsigned(self, divisor: Self) -> Self;

    fn zeros_before(self) -> u32;
    fn zeros_behind(self) -> u32;
    fn ones(self) -> u32;
    fn bytes_swapped(self) -> Self;
    /// Each byte that is not zero with all its bits set.
    fn bytes_combined(self) -> Self;

    /// Whether it is no address of a card: they have 32 bits.
    #[inline(always)]
    fn is_beyond(self) -> bool {
        Self::WIDE && self.kept() >> 32 != 0
    }
}

macro_rules! width {
    ($unsigned:ident, $signed:ident, $double:ident, $double_signed:ident) => {
        impl Width for $unsigned {
            type Signed = $signed;

            const WIDE: bool = $unsigned::BITS == 64;

            #[inline(always)]
            fn of(register: u64) -> $unsigned {
                register as $unsigned
            }
            #[inline(always)]
            fn kept(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn extended(word: u32) -> $unsigned {
                word as i32 as $unsigned
            }
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn signed(self) -> $signed {
                self as $signed
            }
            #[inline(always)]
            fn plain(word: u32) -> $unsigned {
                word as $unsigned
            }

            #[inline(always)]
            fn plus(self, other: $unsigned) -> $unsigned {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $unsigned) -> $unsigned {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn left(self, amount: u32) -> $unsigned {
                self.wrapping_shl(amount)
            }
            #[inline(always)]
            fn right(self, amount: u32) -> $unsigned {
                self.wrapping_shr(amount)
            }
            #[inline(always)]
            fn right_signed(self, amount: u32) -> $unsigned {
                (self as $signed).wrapping_shr(amount) as $unsigned
            }
            #[inline(always)]
            fn rotated_left(self, amount: u32) -> $unsigned {
                self.rotate_left(amount % $unsigned::BITS)
            }

            #[inline(always)]
            fn times(self, other: $unsigned) -> $unsigned {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn high(self, other: $unsigned) -> $unsigned {
                let product = $double_signed::from(self as $signed) * $double_signed::from(other as $signed);
                (product >> $unsigned::BITS) as $unsigned
            }
            #[inline(always)]
            fn high_mixed(self, other: $unsigned) -> $unsigned {
                let product = $double_signed::from(self as $signed) * $double_signed::from(other);
                (product >> $unsigned::BITS) as $unsigned
            }
            #[inline(always)]
            fn high_unsigned(self, other: $unsigned) -> $unsigned {
                (($double::from(self) * $double::from(other)) >> $unsigned::BITS) as $unsigned
            }
            #[inline(always)]
            fn quotient(self, divisor: $unsigned) -> $unsigned {
                match divisor {
                    0 => $unsigned::MAX,
                    _ => (self as $signed).wrapping_div(divisor as $signed) as $unsigned,
                }
            }
            #[inline(always)]
            fn quotient_unsigned(self, divisor: $unsigned) -> $unsigned {
                self.checked_div(divisor).unwrap_or($unsigned::MAX)
            }
            #[inline(always)]
            fn remainder(self, divisor: $unsigned) -> $unsigned {
                match divisor {
                    0 => self,
                    _ => (self as $signed).wrapping_rem(divisor as $signed) as $unsigned,
                }
            }
            #[inline(always)]
            fn remainder_unsigned(self, divisor: $unsigned) -> $unsigned {
                self.checked_rem(divisor).unwrap_or(self)
            }

            #[inline(always)]
            fn zeros_before(self) -> u32 {
                self.leading_zeros()
            }
            #[inline(always)]
            fn zeros_behind(self) -> u32 {
                self.trailing_zeros()
            }
            #[inline(always)]
            fn ones(self) -> u32 {
                self.count_ones()
            }
            #[inline(always)]
            fn bytes_swapped(self) -> $unsigned {
                self.swap_bytes()
            }
            #[inline(always)]
            fn bytes_combined(self) -> $unsigned {
                const ONES: $unsigned = $unsigned::MAX / 0xff;
                let any = ((self & ONES * 0x7f) + ONES * 0x7f) | self;
                (any >> 7 & ONES) * 0xff
            }
        }
    };
}

width!(u32, i32, u64, i64);
width!(u64, i64, u128, i128);
