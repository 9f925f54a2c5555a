//! Divisors for the remedies of errors.

/// Returns the divisor of `n` nearest to `wanted`.
pub(super) fn divisor_near(n: u64, wanted: u64) -> u64 {
    let divides = |d: &u64| *d > 0 && n.is_multiple_of(*d);
    let below = (1..=wanted.min(n)).rev().find(divides);
    let above = (wanted..=n.min(2 * wanted)).find(divides);
    match (below, above) {
        (Some(below), Some(above)) if above - wanted < wanted - below => above,
        (Some(below), _) => below,
        (None, above) => above.unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_divisor() {
        for (n, wanted, found) in [(16, 3, 2), (16, 7, 8), (1 << 20, 5, 4), (7, 5, 7), (1, 9, 1), (12, 4, 4)]
        {
            assert_eq!(divisor_near(n, wanted), found, "{n} by {wanted}");
        }
    }
}
