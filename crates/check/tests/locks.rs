//! Locks of other forms than a word that is 0 or 1.

use super::*;

/// Adds the bits for acquire and release.
fn ordered(words: &[u32]) -> Vec<u32> {
    words.iter().map(|&word| if word & 0x7f == 0x2f { word | ORDERED } else { word }).collect()
}

#[test]
fn a_subtraction_releases_a_lock() {
    let count = [lw(A1, 4, A0), addi(A1, A1, 1), sw(A1, 4, A0)];
    let give = ordered(&[addi(A2, ZERO, -1), amoadd_w(ZERO, A2, A0)]);
    let locked = [&take()[..], &count, &give].concat();
    assert_eq!(Trial::two(&program(&locked)), []);
    assert_eq!(after(&locked, &[&take()[..], &count].concat()), [Defect::LockKept]);
    // A counter is no lock.
    let counted =
        ordered(&[addi(A2, ZERO, 1), amoadd_w(ZERO, A2, A0), addi(A2, ZERO, -1), amoadd_w(ZERO, A2, A0)]);
    assert_eq!(after(&counted, &counted[..2]), []);
}

#[test]
fn a_bit_of_a_word_is_a_lock() {
    let take = ordered(&[addi(A2, ZERO, 1), amoor_w(A3, A2, A0), andi(A3, A3, 1), bne(A3, ZERO, -8)]);
    let count = [lw(A1, 4, A0), addi(A1, A1, 1), sw(A1, 4, A0)];
    let mark = [addi(A2, ZERO, 2), amoor_w(ZERO, A2, A0)];
    let give = ordered(&[addi(A2, ZERO, -2), amoand_w(ZERO, A2, A0)]);
    let whole = [&take[..], &count, &mark, &give].concat();
    assert_eq!(Trial::two(&program(&whole)), []);
    // The other bit is set by then.
    assert_eq!(after(&whole, &[&take[..], &count].concat()), [Defect::LockKept]);
    assert_eq!(after(&whole, &give), [Defect::UnlockWithoutLock]);
    // A run that only clears the other bit releases nothing.
    let clear = [addi(A2, ZERO, -3), amoand_w(ZERO, A2, A0)];
    assert_eq!(after(&whole, &clear), []);
}

#[test]
fn a_lock_of_readers_and_a_writer_is_released_by_a_subtraction() {
    let reads = ordered(&[lr_w(A1, A0), addi(A1, A1, 1), sc_w(A2, A1, A0)]);
    let gives = ordered(&[addi(A2, ZERO, -1), amoadd_w(ZERO, A2, A0)]);
    let both = [&reads[..], &gives].concat();
    assert_eq!(after(&both, &both), []);
    assert_eq!(after(&both, &reads), [Defect::LockKept]);
}

/// Takes the lock in byte 1 by an exchange of the byte, as compilers make it.
fn take_byte() -> Vec<u32> {
    let exchange = [lr_w(A3, A0), or(A4, A3, A2), sc_w(A5, A4, A0), bne(A5, ZERO, -12)];
    [&[addi(A2, ZERO, 0x100)], &ordered(&exchange)[..], &[and(A3, A3, A2), bne(A3, ZERO, -20)]].concat()
}

#[test]
fn a_byte_is_a_lock() {
    let count = [lw(A1, 4, A0), addi(A1, A1, 1), sw(A1, 4, A0)];
    let exchanged = [&take_byte()[..], &count, &[fence(), sb(ZERO, 1, A0)]].concat();
    assert_eq!(Trial::two(&program(&exchanged)), []);
    let set = ordered(&[addi(A2, ZERO, 0x100), amoor_w(A3, A2, A0), and(A3, A3, A2), bne(A3, ZERO, -8)]);
    let flag = [&set[..], &count, &[fence(), sb(ZERO, 1, A0)]].concat();
    assert_eq!(Trial::two(&program(&flag)), []);
    assert_eq!(after(&flag, &[&set[..], &count].concat()), [Defect::LockKept]);
    // Another byte of the word has nothing to do with the lock.
    assert_eq!(after(&flag, &[sb(ZERO, 0, A0)]), []);
    assert_eq!(after(&exchanged, &[sb(A0, 0, A0)]), []);
    assert_eq!(after(&flag, &[addi(A1, ZERO, 1), sb(A1, 1, A0)]), [Defect::Race]);
    assert_eq!(after(&exchanged, &[addi(A1, ZERO, 1), sb(A1, 1, A0)]), [Defect::Race]);
}

#[test]
fn a_lock_that_is_only_tried_has_no_order() {
    let take_at = |offset: i32| ordered(&[addi(A4, A0, offset), addi(A2, ZERO, 1), amoswap_w(A3, A2, A4)]);
    let wait = [bne(A3, ZERO, -4)];
    let give = ordered(&[amoswap_w(ZERO, ZERO, A0), addi(A4, A0, 4), amoswap_w(ZERO, ZERO, A4)]);
    let orders = |second: &[u32]| {
        let both = |held, next| [&take_at(held)[..], &wait, &take_at(next), second, &give].concat();
        after(&both(0, 4), &both(4, 0))
    };
    assert_eq!(orders(&wait), [Defect::LockOrder]);
    assert_eq!(orders(&[]), []);
}
