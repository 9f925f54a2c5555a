//! Compares the arithmetic of atomic operations with plain Rust.

use nicety_portals::*;
use proptest::prelude::*;

use AtomicOp::*;
use Datatype::*;

fn apply(op: AtomicOp, datatype: Datatype, target: &[u8], data: &[u8], operand: &[u8]) -> Vec<u8> {
    let mut target = target.to_vec();
    Atomic::new(op, datatype).unwrap().apply(&mut target, data, operand).unwrap();
    target
}

/// Computes all operators of one integer type in plain Rust, on target `t`, data `d` and operand `o`.
macro_rules! integer_operators {
    ($datatype:ident, $type:ty, $t:expr, $d:expr, $o:expr) => {{
        let (t, d, o) = ($t as $type, $d as $type, $o as $type);
        let bit = |b: bool| if b { 1 as $type } else { 0 };
        let plain: [(AtomicOp, $type); 10] = [
            (Min, if t < d { t } else { d }),
            (Max, if t > d { t } else { d }),
            (Sum, (t as i128 + d as i128) as $type),
            (Prod, (t as i128).wrapping_mul(d as i128) as $type),
            (Lor, bit(t != 0 || d != 0)),
            (Land, bit(t != 0 && d != 0)),
            (Lxor, bit((t != 0) ^ (d != 0))),
            (Bor, t | d),
            (Band, t & d),
            (Bxor, t ^ d),
        ];
        for (op, expected) in plain {
            let got = apply(op, $datatype, &t.to_le_bytes(), &d.to_le_bytes(), &[]);
            prop_assert_eq!(got, expected.to_le_bytes(), "{} {} of {} and {}", op, $datatype, t, d);
        }
        let keep = |swap: bool| if swap { d } else { t };
        let swaps: [(AtomicOp, $type); 7] = [
            (Cswap, keep(o == t)),
            (CswapNe, keep(o != t)),
            (CswapLe, keep(o <= t)),
            (CswapLt, keep(o < t)),
            (CswapGe, keep(o >= t)),
            (CswapGt, keep(o > t)),
            (Mswap, (t & !o) | (d & o)),
        ];
        for (op, expected) in swaps {
            let got = apply(op, $datatype, &t.to_le_bytes(), &d.to_le_bytes(), &o.to_le_bytes());
            prop_assert_eq!(got, expected.to_le_bytes(), "{} {} of {} {} {}", op, $datatype, t, d, o);
        }
        prop_assert_eq!(apply(Swap, $datatype, &t.to_le_bytes(), &d.to_le_bytes(), &[]), d.to_le_bytes());
    }};
}

macro_rules! float_operators {
    ($datatype:ident, $complex:ident, $type:ty, $t:expr, $d:expr, $o:expr) => {{
        let (t, d, o): ($type, $type, $type) = ($t, $d, $o);
        let plain = [
            (Min, if d < t { d } else { t }),
            (Max, if d > t { d } else { t }),
            (Sum, t + d),
            (Prod, t * d),
            (Swap, d),
        ];
        for (op, expected) in plain {
            let got = apply(op, $datatype, &t.to_le_bytes(), &d.to_le_bytes(), &[]);
            prop_assert_eq!(got, expected.to_le_bytes(), "{} {} of {} and {}", op, $datatype, t, d);
        }
        let keep = |swap: bool| if swap { d } else { t };
        let swaps = [
            (Cswap, keep(o == t)),
            (CswapNe, keep(o != t)),
            (CswapLe, keep(o <= t)),
            (CswapLt, keep(o < t)),
            (CswapGe, keep(o >= t)),
            (CswapGt, keep(o > t)),
        ];
        for (op, expected) in swaps {
            let got = apply(op, $datatype, &t.to_le_bytes(), &d.to_le_bytes(), &o.to_le_bytes());
            prop_assert_eq!(got, expected.to_le_bytes(), "{} {} of {} {} {}", op, $datatype, t, d, o);
        }
        // The complex numbers are t + di (target) and d + oi (data).
        let bytes = |re: $type, im: $type| [re.to_le_bytes(), im.to_le_bytes()].concat();
        let (x, y) = (bytes(t, d), bytes(d, o));
        let same = t == d && d == o;
        for (op, expected) in [(Sum, bytes(t + d, d + o)), (Prod, bytes(t * d - d * o, t * o + d * d))] {
            prop_assert_eq!(apply(op, $complex, &x, &y, &[]), expected, "{}", op);
        }
        prop_assert_eq!(apply(Swap, $complex, &x, &y, &[]), y.clone());
        prop_assert_eq!(apply(Cswap, $complex, &x, &y, &y), if same { y.clone() } else { x.clone() });
        prop_assert_eq!(apply(CswapNe, $complex, &x, &y, &y), if same { x.clone() } else { y.clone() });
        let own = t == t && d == d;
        prop_assert_eq!(apply(Cswap, $complex, &x, &y, &x), if own { y } else { x });
    }};
}

/// Small, extreme and arbitrary numbers.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-2..3i64, Just(i64::MIN), Just(i64::MAX), Just(i64::from(i32::MIN)), any::<i64>()]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-2..3i8).prop_map(f64::from),
        Just(-0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        any::<f32>().prop_map(f64::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000 * ProptestConfig::default().cases / 256))]

    #[test]
    fn integers_agree_with_plain_rust(t in number(), d in number(), o in number()) {
        integer_operators!(Int8, i8, t, d, o);
        integer_operators!(Uint8, u8, t, d, o);
        integer_operators!(Int16, i16, t, d, o);
        integer_operators!(Uint16, u16, t, d, o);
        integer_operators!(Int32, i32, t, d, o);
        integer_operators!(Uint32, u32, t, d, o);
        integer_operators!(Int64, i64, t, d, o);
        integer_operators!(Uint64, u64, t, d, o);
    }

    #[test]
    fn floats_agree_with_plain_rust(t in float(), d in float(), o in float()) {
        float_operators!(Float, FloatComplex, f32, t as f32, d as f32, o as f32);
        float_operators!(Double, DoubleComplex, f64, t, d, o);
    }
}

#[test]
fn every_item_is_worked_on() {
    assert_eq!(apply(Sum, Uint8, &[1, 2, 255], &[10, 20, 2], &[]), [11, 22, 1]);
    assert_eq!(apply(Max, Int16, &[1, 0, 0, 0x80], &[0, 0, 1, 0], &[]), [1, 0, 1, 0]);
    assert_eq!(apply(Swap, DoubleComplex, &[1; 32], &[2; 32], &[]), [2; 32]);
    // A message truncated to no bytes changes nothing.
    assert_eq!(apply(Cswap, Int32, &[], &[], &[1; 4]), []);
}

#[test]
fn pairs_without_a_meaning_do_not_exist() {
    let mut pairs = 0;
    for &op in AtomicOp::ALL {
        for &datatype in Datatype::ALL {
            let (real, complex) =
                (matches!(datatype, Float | Double), matches!(datatype, FloatComplex | DoubleComplex));
            let bits = matches!(op, Lor | Land | Bor | Band | Lxor | Bxor | Mswap);
            let order = matches!(op, Min | Max | CswapLe | CswapLt | CswapGe | CswapGt);
            let meant = !(bits && (real || complex)) && !(order && complex);
            let pair = Atomic::new(op, datatype);
            assert_eq!(pair.is_ok(), meant, "{op} {datatype}");
            if let Ok(pair) = pair {
                assert_eq!((pair.op(), pair.datatype()), (op, datatype));
                pairs += 1;
            }
        }
    }
    assert_eq!(pairs, 18 * 12 - 7 * 4 - 6 * 2);
    assert!(Atomic::new(Bor, Float).unwrap_err().to_string().contains("integers only"));
    assert!(Atomic::new(Max, FloatComplex).unwrap_err().to_string().contains("no order"));
}

#[test]
fn lengths_are_checked_and_nothing_changes_where_they_are_wrong() {
    let refused = |op, datatype, target: usize, data: usize, operand: usize| {
        let mut bytes = [7; 64];
        let result = Atomic::new(op, datatype).unwrap().apply(
            &mut bytes[..target],
            &[1; 64][..data],
            &[7; 64][..operand],
        );
        assert_eq!(bytes, [7; 64]);
        result.unwrap_err().to_string()
    };
    assert!(refused(Sum, Int32, 4, 8, 0).contains("one length"));
    assert!(refused(Sum, Int32, 6, 6, 0).contains("whole items"));
    assert!(refused(Cswap, Int32, 8, 8, 4).contains("exactly one"));
    assert!(refused(Cswap, Int32, 4, 4, 0).contains("operand"));
    assert!(refused(Mswap, Int64, 8, 8, 4).contains("operand"));
    assert!(refused(Sum, Int32, 4, 4, 4).contains("operand"));
    assert!(refused(Swap, Int32, 4, 4, 4).contains("operand"));
    let operand = Operand::new(&[1, 2, 3, 4]).unwrap();
    assert_eq!(operand.as_slice(), [1, 2, 3, 4]);
    assert_eq!(format!("{operand:?}"), "Operand([01, 02, 03, 04])");
    assert!(Operand::new(&[0; 17]).is_err());
    assert_eq!(Operand::new(&[]), Ok(Operand::NONE));
}
