//! Single-precision arithmetic of RISC-V's F extension: correctly rounded in every mode, with the exception flags of
//! IEEE 754. Underflow is detected after rounding, and there is one NaN.
//!
//! Every operation is written in integers once, for all cases. Before that, if a result is rounded to nearest and is an
//! ordinary number, the host's own arithmetic computes it. Its exactness follows from double precision, or from the
//! error term of an addition.

/// The NaN result of every operation.
pub(crate) const NAN: u32 = 0x7fc0_0000;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const LARGEST: u32 = INFINITY - 1;

/// Exception flags, as in `fflags`.
pub(crate) mod flag {
    pub(crate) const INEXACT: u32 = 1;
    pub(crate) const UNDERFLOW: u32 = 2;
    pub(crate) const OVERFLOW: u32 = 4;
    pub(crate) const DIVIDE_BY_ZERO: u32 = 8;
    pub(crate) const INVALID: u32 = 16;
}

/// Rounding modes, numbered as in `frm` and instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    TowardsZero,
    Down,
    Up,
    NearestAway,
}

impl Rounding {
    pub(crate) const fn from_number(number: u32) -> Option<Rounding> {
        match number {
            0 => Some(Rounding::NearestEven),
            1 => Some(Rounding::TowardsZero),
            2 => Some(Rounding::Down),
            3 => Some(Rounding::Up),
            4 => Some(Rounding::NearestAway),
            _ => None,
        }
    }
}

const fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

const fn is_signaling(bits: u32) -> bool {
    is_nan(bits) && bits & 1 << 22 == 0
}

const fn is_infinite(bits: u32) -> bool {
    bits & !SIGN == INFINITY
}

const fn is_zero(bits: u32) -> bool {
    bits & !SIGN == 0
}

const fn is_negative(bits: u32) -> bool {
    bits & SIGN != 0
}

const fn signed(negative: bool, magnitude: u32) -> u32 {
    if negative { magnitude | SIGN } else { magnitude }
}

const fn invalid(flags: &mut u32) -> u32 {
    *flags |= flag::INVALID;
    NAN
}

/// Returns the result if some operand is a NaN.
fn nan_of(operands: &[u32], flags: &mut u32) -> u32 {
    if operands.iter().any(|&bits| is_signaling(bits)) {
        *flags |= flag::INVALID;
    }
    NAN
}

/// ±significand × 2^exponent.
#[derive(Clone, Copy, Debug)]
struct Number {
    negative: bool,
    exponent: i32,
    significand: u64,
}

impl Number {
    /// Returns the value of finite bits. A nonzero significand has its leading one in bit 23.
    const fn of(bits: u32) -> Number {
        let negative = is_negative(bits);
        let (biased, fraction) = ((bits >> 23 & 0xff) as i32, (bits & 0x7f_ffff) as u64);
        if biased != 0 {
            return Number { negative, exponent: biased - 150, significand: fraction | 1 << 23 };
        }
        if fraction == 0 {
            return Number { negative, exponent: 0, significand: 0 };
        }
        let shift = fraction.leading_zeros() - 40;
        Number { negative, exponent: -149 - shift as i32, significand: fraction << shift }
    }

    /// Returns the same value with the leading one of a nonzero significand in bit `bit`, at or above its current
    /// place.
    const fn raised(self, bit: u32) -> Number {
        let shift = self.significand.leading_zeros() - (63 - bit);
        Number { exponent: self.exponent - shift as i32, significand: self.significand << shift, ..self }
    }
}

/// Rounds away the low `drop` bits of `value`. Returns the result, and whether a bit was lost.
const fn rounded(value: u64, drop: u32, negative: bool, rounding: Rounding) -> (u64, bool) {
    if drop == 0 {
        return (value, false);
    }
    // Above this limit, only the presence of a set bit matters.
    let drop = if drop > 100 { 100 } else { drop };
    let wide = value as u128;
    let (kept, lost, half) = ((wide >> drop) as u64, wide & ((1 << drop) - 1), 1 << (drop - 1));
    let up = match rounding {
        Rounding::NearestEven => lost > half || lost == half && kept & 1 != 0,
        Rounding::NearestAway => lost >= half,
        Rounding::TowardsZero => false,
        Rounding::Down => negative && lost != 0,
        Rounding::Up => !negative && lost != 0,
    };
    (kept + up as u64, lost != 0)
}

/// Rounds a nonzero number to bits. The lowest bit of a significand of more than 26 bits may stand for everything below
/// it.
fn round(number: Number, rounding: Rounding, flags: &mut u32) -> u32 {
    const DROP: u32 = 40; // the excess of 64 bits over 24
    let Number { negative, exponent, significand } = number.raised(63);
    let biased = exponent + 63 + 127;
    if biased >= 1 {
        let (kept, inexact) = rounded(significand, DROP, negative, rounding);
        // The leading one adds one to the exponent, and a carry out of the fraction another one.
        let magnitude = u64::from((biased - 1).unsigned_abs()) << 23;
        if magnitude + kept >= u64::from(INFINITY) {
            *flags |= flag::OVERFLOW | flag::INEXACT;
            let away = match rounding {
                Rounding::NearestEven | Rounding::NearestAway => true,
                Rounding::TowardsZero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            return signed(negative, if away { INFINITY } else { LARGEST });
        }
        if inexact {
            *flags |= flag::INEXACT;
        }
        return signed(negative, (magnitude + kept) as u32);
    }
    let (kept, inexact) = rounded(significand, DROP + (1 - biased).unsigned_abs(), negative, rounding);
    if inexact {
        *flags |= flag::INEXACT;
        // A result is tiny if, with an unlimited exponent, it would be below the normal numbers.
        let becomes_normal = biased == 0 && rounded(significand, DROP, negative, rounding).0 == 1 << 24;
        if !becomes_normal {
            *flags |= flag::UNDERFLOW;
        }
    }
    signed(negative, kept as u32)
}

/// Returns the zero that a sum of opposites yields.
const fn cancelled(rounding: Rounding) -> u32 {
    signed(matches!(rounding, Rounding::Down), 0)
}

/// Returns a + b for significands of at most 48 bits.
fn sum(a: Number, b: Number, rounding: Rounding, flags: &mut u32) -> u32 {
    match (a.significand, b.significand) {
        (0, 0) if a.negative == b.negative => return signed(a.negative, 0),
        (0, 0) => return cancelled(rounding),
        (0, _) => return round(b, rounding, flags),
        (_, 0) => return round(a, rounding, flags),
        _ => {}
    }
    let (a, b) = (a.raised(61), b.raised(61));
    let a_is_larger = (a.exponent, a.significand) >= (b.exponent, b.significand);
    let (large, small) = if a_is_larger { (a, b) } else { (b, a) };
    let shift = (large.exponent - small.exponent).unsigned_abs().min(63);
    let lost = small.significand & ((1 << shift) - 1) != 0;
    let low = small.significand >> shift | u64::from(lost);
    let same = a.negative == b.negative;
    let significand = if same { large.significand + low } else { large.significand - low };
    if significand == 0 {
        return cancelled(rounding);
    }
    round(Number { significand, ..large }, rounding, flags)
}

fn product(a: u32, b: u32) -> Number {
    let (a, b) = (Number::of(a), Number::of(b));
    Number {
        negative: a.negative != b.negative,
        exponent: a.exponent + b.exponent,
        significand: a.significand * b.significand,
    }
}

/// Whether a result of the host is valid: not NaN, infinite, zero, or near or below the smallest normal number.
fn ordinary(result: f32) -> bool {
    let magnitude = result.abs();
    magnitude > f32::MIN_POSITIVE && magnitude < f32::INFINITY
}

fn note(flags: &mut u32, inexact: bool) {
    *flags |= u32::from(inexact) * flag::INEXACT;
}

pub(crate) fn add(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if rounding == Rounding::NearestEven {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let result = x + y;
        if ordinary(result) {
            let of_y = result - x;
            let lost = (x - (result - of_y)) + (y - of_y);
            note(flags, lost != 0.0);
            return result.to_bits();
        }
    }
    add_slow(a, b, rounding, flags)
}

fn add_slow(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if is_nan(a) || is_nan(b) {
        return nan_of(&[a, b], flags);
    }
    match (is_infinite(a), is_infinite(b)) {
        (true, true) if a != b => invalid(flags),
        (true, _) => a,
        (_, true) => b,
        _ => sum(Number::of(a), Number::of(b), rounding, flags),
    }
}

pub(crate) fn sub(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    add(a, b ^ SIGN, rounding, flags)
}

pub(crate) fn mul(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if rounding == Rounding::NearestEven {
        // 48 bits: exact in double precision.
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        let result = exact as f32;
        if ordinary(result) {
            note(flags, f64::from(result) != exact);
            return result.to_bits();
        }
    }
    mul_slow(a, b, rounding, flags)
}

fn mul_slow(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if is_nan(a) || is_nan(b) {
        return nan_of(&[a, b], flags);
    }
    let negative = is_negative(a ^ b);
    if is_infinite(a) || is_infinite(b) {
        return if is_zero(a) || is_zero(b) { invalid(flags) } else { signed(negative, INFINITY) };
    }
    if is_zero(a) || is_zero(b) {
        return signed(negative, 0);
    }
    round(product(a, b), rounding, flags)
}

/// Returns a × b + c, rounded once.
pub(crate) fn fused(a: u32, b: u32, c: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if rounding == Rounding::NearestEven {
        let product = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
        let addend = f64::from(f32::from_bits(c));
        let sum = product + addend;
        let of_addend = sum - product;
        let lost = (product - (sum - of_addend)) + (addend - of_addend);
        // Rounds to odd first, so that a second rounding gives the result of a single one.
        let odd = if lost != 0.0 && sum.to_bits() & 1 == 0 {
            let step = if (lost > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
            f64::from_bits(sum.to_bits().wrapping_add(step))
        } else {
            sum
        };
        let result = odd as f32;
        if ordinary(result) {
            note(flags, lost != 0.0 || f64::from(result) != odd);
            return result.to_bits();
        }
    }
    fused_slow(a, b, c, rounding, flags)
}

fn fused_slow(a: u32, b: u32, c: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    let of_infinity_and_zero = is_infinite(a) && is_zero(b) || is_zero(a) && is_infinite(b);
    if of_infinity_and_zero {
        return invalid(flags); // a quiet NaN as the addend makes no difference
    }
    if is_nan(a) || is_nan(b) || is_nan(c) {
        return nan_of(&[a, b, c], flags);
    }
    if is_infinite(a) || is_infinite(b) {
        let infinity = signed(is_negative(a ^ b), INFINITY);
        return if is_infinite(c) && c != infinity { invalid(flags) } else { infinity };
    }
    if is_infinite(c) {
        return c;
    }
    sum(product(a, b), Number::of(c), rounding, flags)
}

pub(crate) fn div(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if rounding == Rounding::NearestEven {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let result = x / y;
        if ordinary(result) {
            note(flags, f64::from(result) * f64::from(y) != f64::from(x));
            return result.to_bits();
        }
    }
    div_slow(a, b, rounding, flags)
}

fn div_slow(a: u32, b: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if is_nan(a) || is_nan(b) {
        return nan_of(&[a, b], flags);
    }
    let negative = is_negative(a ^ b);
    match (is_infinite(a), is_infinite(b)) {
        (true, true) => return invalid(flags),
        (true, false) => return signed(negative, INFINITY),
        (false, true) => return signed(negative, 0),
        (false, false) => {}
    }
    match (is_zero(a), is_zero(b)) {
        (true, true) => return invalid(flags),
        (true, false) => return signed(negative, 0),
        (false, true) => {
            *flags |= flag::DIVIDE_BY_ZERO;
            return signed(negative, INFINITY);
        }
        (false, false) => {}
    }
    let (a, b) = (Number::of(a), Number::of(b));
    let dividend = a.significand << 39;
    let (quotient, rest) = (dividend / b.significand, dividend % b.significand);
    let significand = quotient | u64::from(rest != 0);
    round(Number { negative, exponent: a.exponent - 39 - b.exponent, significand }, rounding, flags)
}

pub(crate) fn sqrt(a: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if rounding == Rounding::NearestEven {
        let x = f32::from_bits(a);
        let result = x.sqrt();
        if ordinary(result) {
            note(flags, f64::from(result) * f64::from(result) != f64::from(x));
            return result.to_bits();
        }
    }
    sqrt_slow(a, rounding, flags)
}

fn sqrt_slow(a: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    if is_nan(a) {
        return nan_of(&[a], flags);
    }
    if is_zero(a) {
        return a;
    }
    if is_negative(a) {
        return invalid(flags);
    }
    if is_infinite(a) {
        return a;
    }
    let Number { exponent, significand, .. } = Number::of(a);
    // Only an even exponent has a root.
    let shift = 38 + (exponent & 1);
    let square = significand << shift;
    let root = square.isqrt();
    let significand = root << 1 | u64::from(root * root != square);
    let exponent = (exponent - shift) / 2 - 1;
    round(Number { negative: false, exponent, significand }, rounding, flags)
}

/// Orders numbers other than NaNs, -0 below +0.
const fn rank(bits: u32) -> u32 {
    if is_negative(bits) { !bits } else { bits | SIGN }
}

/// Returns the smaller or the larger one, or the number if one is a NaN.
pub(crate) fn min_max(a: u32, b: u32, larger: bool, flags: &mut u32) -> u32 {
    if is_signaling(a) || is_signaling(b) {
        *flags |= flag::INVALID;
    }
    match (is_nan(a), is_nan(b)) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        _ if (rank(a) < rank(b)) != larger => a,
        _ => b,
    }
}

/// A comparison that only a signaling NaN makes invalid.
pub(crate) fn equal(a: u32, b: u32, flags: &mut u32) -> bool {
    if is_signaling(a) || is_signaling(b) {
        *flags |= flag::INVALID;
    }
    f32::from_bits(a) == f32::from_bits(b)
}

/// A comparison that any NaN makes invalid.
pub(crate) fn less(a: u32, b: u32, or_equal: bool, flags: &mut u32) -> bool {
    if is_nan(a) || is_nan(b) {
        *flags |= flag::INVALID;
    }
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    if or_equal { a <= b } else { a < b }
}

/// The result of `fclass.s`: one bit of ten.
pub(crate) const fn class(bits: u32) -> u32 {
    if is_nan(bits) {
        return if is_signaling(bits) { 1 << 8 } else { 1 << 9 };
    }
    let size = match bits & !SIGN {
        0 => 0,
        1..=0x7f_ffff => 1,
        INFINITY => 3,
        _ => 2,
    };
    if is_negative(bits) { 1 << (3 - size) } else { 1 << (4 + size) }
}

/// Converts to an integer from `least` to `most`. A value out of range gives the nearer end and is invalid, not
/// inexact. A NaN gives `most` and is invalid.
fn to_integer(bits: u32, least: i128, most: i128, rounding: Rounding, flags: &mut u32) -> i128 {
    let (negative, mut inexact) = (is_negative(bits), false);
    let value = if is_nan(bits) {
        i128::MAX
    } else {
        let number = Number::of(bits);
        let magnitude = match number.exponent {
            42.. => 1 << 65, // infinity among them
            up @ 0.. => i128::from(number.significand) << up,
            down => {
                let (magnitude, lost) = rounded(number.significand, down.unsigned_abs(), negative, rounding);
                inexact = lost;
                magnitude.into()
            }
        };
        if negative { -magnitude } else { magnitude }
    };
    let fits = value.clamp(least, most);
    *flags |= match (fits == value, inexact) {
        (false, _) => flag::INVALID,
        (true, true) => flag::INEXACT,
        (true, false) => 0,
    };
    fits
}

pub(crate) fn to_i32(bits: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    to_integer(bits, i32::MIN.into(), i32::MAX.into(), rounding, flags) as u32
}

pub(crate) fn to_u32(bits: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    to_integer(bits, 0, u32::MAX.into(), rounding, flags) as u32
}

pub(crate) fn to_i64(bits: u32, rounding: Rounding, flags: &mut u32) -> u64 {
    to_integer(bits, i64::MIN.into(), i64::MAX.into(), rounding, flags) as u64
}

pub(crate) fn to_u64(bits: u32, rounding: Rounding, flags: &mut u32) -> u64 {
    to_integer(bits, 0, u64::MAX.into(), rounding, flags) as u64
}

fn from_integer(negative: bool, magnitude: u64, rounding: Rounding, flags: &mut u32) -> u32 {
    if magnitude == 0 {
        return 0;
    }
    round(Number { negative, exponent: 0, significand: magnitude }, rounding, flags)
}

pub(crate) fn from_i32(value: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    from_i64(i64::from(value as i32) as u64, rounding, flags)
}

pub(crate) fn from_u32(value: u32, rounding: Rounding, flags: &mut u32) -> u32 {
    from_integer(false, value.into(), rounding, flags)
}

pub(crate) fn from_i64(value: u64, rounding: Rounding, flags: &mut u32) -> u32 {
    let value = value as i64;
    from_integer(value < 0, value.unsigned_abs(), rounding, flags)
}

pub(crate) fn from_u64(value: u64, rounding: Rounding, flags: &mut u32) -> u32 {
    from_integer(false, value, rounding, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits that test each other's edges: arbitrary, with small exponent differences, with few significant bits,
    /// special.
    fn operand() -> impl Strategy<Value = u32> {
        let near = (any::<bool>(), 100..160u32, any::<u32>(), 0..24u32);
        let near = near.prop_map(|(negative, exponent, fraction, zeros)| {
            signed(negative, exponent << 23 | (fraction & 0x7f_ffff) >> zeros << zeros)
        });
        let special = [0, 1, 2, 0x7f_ffff, 0x80_0000, 0x80_0001, 0xff_ffff, 0x100_0000, LARGEST, INFINITY]
            .into_iter()
            .chain([
                INFINITY + 1,
                NAN,
                NAN + 5,
                0x3f80_0000,
                0x3f7f_ffff,
                0x3f80_0001,
                0x4b00_0000,
                0x3400_0000,
            ]);
        let special = prop::sample::select(special.flat_map(|bits| [bits, bits | SIGN]).collect::<Vec<_>>());
        prop_oneof![3 => any::<u32>(), 3 => near, 2 => special]
    }

    fn cases() -> u32 {
        let soak = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
        soak.unwrap_or(0).max(20_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

        #[test]
        fn the_hosts_arithmetic_and_ours_agree(a in operand(), b in operand(), c in operand()) {
            const NEAREST: Rounding = Rounding::NearestEven;
            type Operation<'f> = &'f dyn Fn(&mut u32) -> u32;
            let pairs: [(&str, Operation<'_>, Operation<'_>); 5] = [
                ("add", &|f| add(a, b, NEAREST, f), &|f| add_slow(a, b, NEAREST, f)),
                ("mul", &|f| mul(a, b, NEAREST, f), &|f| mul_slow(a, b, NEAREST, f)),
                ("div", &|f| div(a, b, NEAREST, f), &|f| div_slow(a, b, NEAREST, f)),
                ("sqrt", &|f| sqrt(a, NEAREST, f), &|f| sqrt_slow(a, NEAREST, f)),
                ("fused", &|f| fused(a, b, c, NEAREST, f), &|f| fused_slow(a, b, c, NEAREST, f)),
            ];
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            let host = [x + y, x * y, x / y, x.sqrt(), x.mul_add(y, z)];
            for ((name, fast, slow), host) in pairs.into_iter().zip(host) {
                let (mut fast_flags, mut slow_flags) = (0, 0);
                let (fast, slow) = (fast(&mut fast_flags), slow(&mut slow_flags));
                prop_assert_eq!((fast, fast_flags), (slow, slow_flags), "{} of {:#x} {:#x} {:#x}", name, a, b, c);
                let host = if host.is_nan() { NAN } else { host.to_bits() };
                prop_assert_eq!(slow, host, "{} of {:#x} {:#x} {:#x}", name, a, b, c);
            }
        }

        #[test]
        fn conversions_are_those_of_the_host(a in operand(), n in any::<u32>()) {
            let x = f32::from_bits(a);
            let mut flags = 0;
            let of_nan = |value: u32, nan: u32| if x.is_nan() { nan } else { value };
            prop_assert_eq!(to_i32(a, Rounding::TowardsZero, &mut flags), of_nan(x as i32 as u32, i32::MAX as u32));
            prop_assert_eq!(to_u32(a, Rounding::TowardsZero, &mut flags), of_nan(x as u32, u32::MAX));
            for (mode, rounded) in [
                (Rounding::NearestEven, x.round_ties_even()),
                (Rounding::NearestAway, x.round()),
                (Rounding::Down, x.floor()),
                (Rounding::Up, x.ceil()),
            ] {
                let mut flags = 0;
                prop_assert_eq!(to_i32(a, mode, &mut flags), of_nan(rounded as i32 as u32, i32::MAX as u32));
                let fits = rounded >= -2f32.powi(31) && rounded < 2f32.powi(31);
                let expected = if !fits { flag::INVALID } else { u32::from(rounded != x) };
                prop_assert_eq!(flags, expected, "{:?} of {:#x}", mode, a);
            }
            let mut flags = 0;
            prop_assert_eq!(from_i32(n, Rounding::NearestEven, &mut flags), (n as i32 as f32).to_bits());
            prop_assert_eq!(flags, u32::from(f64::from(n as i32 as f32) != f64::from(n as i32)));
            flags = 0;
            prop_assert_eq!(from_u32(n, Rounding::NearestEven, &mut flags), (n as f32).to_bits());
            prop_assert_eq!(flags, u32::from(f64::from(n as f32) != f64::from(n)));
        }
    }
}
