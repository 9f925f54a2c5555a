//! Draws ranks by Zipf's law in constant memory. The algorithm is rejection-inversion (Hörmann and Derflinger,
//! 'Rejection-inversion to generate variates from monotone discrete distributions', ACM TOMACS 6(3), 1996).

use nicety_kernel::Rng;

/// A distribution of ranks 1, 2, ... `count`. The probability of rank k is proportional to k^-s, with the exponent s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    exponent: f64,
    count: f64,
    /// The range of the drawn numbers. It begins at the integral at 3/2 minus the weight of the first rank, and ends at
    /// the integral at `count` + 1/2.
    ends: (f64, f64),
    /// If a rank exceeds the inverse of the drawn number by at most this value, it is accepted without a further test.
    close: f64,
}

impl Zipf {
    /// Returns the distribution of `count` ranks. `count` must be at least 1, and the exponent above 0.
    pub(crate) fn new(count: u64, exponent: f64) -> Zipf {
        let count = count as f64;
        let mut zipf = Zipf { exponent, count, ends: (0.0, 0.0), close: 0.0 };
        zipf.ends = (zipf.integral(1.5) - 1.0, zipf.integral(count + 0.5));
        zipf.close = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws a rank, and returns the rank minus 1.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let (first, last) = self.ends;
        loop {
            let drawn = last + rng.unit() * (first - last);
            let x = self.inverse(drawn);
            let rank = libm::floor(x + 0.5).clamp(1.0, self.count);
            if rank - x <= self.close || drawn >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Returns the integral of the weight up to `x`, plus a constant.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.exponent) * log;
        // (e^t - 1) / t; its limit at 0 is 1.
        let slope = if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t / 2.0 };
        slope * log
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        // log(1 + t) / t; its limit at 0 is 1.
        let slope = if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t / 2.0 };
        libm::exp(slope * x)
    }
}

#[cfg(test)]
mod tests {
    use super::Zipf;
    use nicety_kernel::Rng;
    use nicety_types::NodeId;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_as_often_as_zipf_says() {
        for exponent in [0.5, 0.99, 1.0, 1.1, 2.5] {
            let (zipf, mut rng) = (Zipf::new(50, exponent), Rng::named(5, NodeId(0), "zipf"));
            let draws = 200_000;
            let mut counts = [0u32; 50];
            for _ in 0..draws {
                counts[zipf.draw(&mut rng) as usize] += 1;
            }
            let all: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (rank, &count) in (1..).zip(&counts) {
                let expected = f64::from(draws) * f64::from(rank).powf(-exponent) / all;
                let off = (f64::from(count) - expected).abs();
                assert!(off < 6.0 * expected.sqrt() + 1.0, "{exponent}: {rank}: {count}, not {expected}");
            }
        }
    }

    proptest! {
        #[test]
        fn ranks_are_in_their_range(count in 1u64..1 << 40, exponent in 0.01f64..10.0, seed: u64) {
            let (zipf, mut rng) = (Zipf::new(count, exponent), Rng::named(seed, NodeId(0), "zipf"));
            for _ in 0..100 {
                prop_assert!(zipf.draw(&mut rng) < count);
            }
        }
    }
}
