//! The distances that TSPLIB computes from coordinates (Reinelt, TSPLIB 95, section 2). All are rounded to whole numbers.
//!
//! Arithmetic is that of 64-bit floating-point numbers, as in TSPLIB's C code.

/// A rule for the distance of two cities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// The Euclidean distance, rounded to nearest.
    Euclidean,
    /// The Euclidean distance, rounded up.
    Ceiling,
    /// The pseudo-Euclidean distance of the problems att48 and att532, rounded up.
    Att,
    /// The distance in kilometres on an idealised earth.
    Geographical,
    /// The sum of the distances on the axes.
    Manhattan,
    /// The longest distance on an axis.
    Maximum,
}

/// TSPLIB's pi.
#[expect(clippy::approx_constant, reason = "the lengths of TSPLIB's tours need it")]
const PI: f64 = 3.141592;

/// TSPLIB's radius of the earth in kilometres.
const RADIUS: f64 = 6378.388;

impl Metric {
    /// Returns the distance of two cities: a whole number, or infinity. Coordinates are finite. An axis that a problem does not
    /// have is 0.
    pub(super) fn distance(self, a: [f64; 3], b: [f64; 3]) -> f64 {
        let apart = [0, 1, 2].map(|axis| (a[axis] - b[axis]).abs());
        let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
        match self {
            Metric::Euclidean => nearest(square.sqrt()),
            Metric::Ceiling => square.sqrt().ceil(),
            Metric::Att => {
                let exact = (square / 10.0).sqrt();
                let rounded = nearest(exact);
                if rounded < exact { rounded + 1.0 } else { rounded }
            }
            Metric::Geographical => geographical(a, b),
            Metric::Manhattan => nearest(apart[0] + apart[1] + apart[2]),
            Metric::Maximum => apart.map(nearest).into_iter().fold(0.0, f64::max),
        }
    }
}

/// TSPLIB's `nint` of a number that is 0 or more.
fn nearest(value: f64) -> f64 {
    (value + 0.5).floor()
}

fn geographical(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [(latitude_a, longitude_a), (latitude_b, longitude_b)] =
        [a, b].map(|at| (radians(at[0]), radians(at[1])));
    // libm gives the same distances on every machine.
    let q1 = libm::cos(longitude_a - longitude_b);
    let q2 = libm::cos(latitude_a - latitude_b);
    let q3 = libm::cos(latitude_a + latitude_b);
    // Rounding of the products may leave the domain of the arc cosine.
    let cosine = (0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)).clamp(-1.0, 1.0);
    (RADIUS * libm::acos(cosine) + 1.0).floor()
}

/// Returns the angle of a coordinate DDD.MM in degrees and minutes. The degrees are truncated toward zero. TSPLIB 95 says that
/// they are rounded to nearest; its list of questions corrects this, and the known lengths of tours need the truncation.
fn radians(coordinate: f64) -> f64 {
    let degrees = coordinate.trunc();
    let minutes = coordinate - degrees;
    PI * (degrees + 5.0 * minutes / 3.0) / 180.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Metric; 6] = [
        Metric::Euclidean,
        Metric::Ceiling,
        Metric::Att,
        Metric::Geographical,
        Metric::Manhattan,
        Metric::Maximum,
    ];

    #[test]
    fn distances_are_those_by_hand() {
        let origin = [0.0; 3];
        for (metric, to, expected) in [
            // Roots of 25, 2, 8 and 0.5: 5, 1.41, 2.83 and 0.71.
            (Metric::Euclidean, [3.0, 4.0, 0.0], 5.0),
            (Metric::Euclidean, [1.0, -1.0, 0.0], 1.0),
            (Metric::Euclidean, [-2.0, 2.0, 0.0], 3.0),
            (Metric::Euclidean, [0.5, 0.5, 0.0], 1.0),
            // A half is rounded up.
            (Metric::Euclidean, [2.5, 0.0, 0.0], 3.0),
            (Metric::Euclidean, [0.0, 2.4999, 0.0], 2.0),
            // 1 + 4 + 4 = 9.
            (Metric::Euclidean, [1.0, 2.0, -2.0], 3.0),
            (Metric::Ceiling, [3.0, 4.0, 0.0], 5.0),
            (Metric::Ceiling, [1.0, 1.0, 0.0], 2.0),
            (Metric::Ceiling, [0.1, 0.0, 0.0], 1.0),
            // The root of 25 / 10 is 1.58, which rounds up; that of 12.25 / 10 is 1.107, which rounds down and is then too short.
            (Metric::Att, [3.0, 4.0, 0.0], 2.0),
            (Metric::Att, [3.5, 0.0, 0.0], 2.0),
            // The root of 40 / 10 is 2.
            (Metric::Att, [6.0, 2.0, 0.0], 2.0),
            (Metric::Manhattan, [1.2, -1.2, 0.0], 2.0),
            (Metric::Manhattan, [1.2, 1.2, -0.1], 3.0),
            (Metric::Maximum, [1.4, -2.5, 0.0], 3.0),
            (Metric::Maximum, [1.4, 2.4, 7.7], 8.0),
        ] {
            assert_eq!(metric.distance(origin, to), expected, "{metric:?} {to:?}");
            assert_eq!(metric.distance(to, origin), expected, "{metric:?} {to:?}");
        }
    }

    #[test]
    fn geographical_distances_are_those_by_hand() {
        let distance =
            |a: [f64; 2], b: [f64; 2]| Metric::Geographical.distance([a[0], a[1], 0.0], [b[0], b[1], 0.0]);
        // On the equator and on a meridian, a degree is 6378.388 x 3.141592 / 180 = 111.323 km. One is added before truncation.
        assert_eq!(distance([0.0, 0.0], [0.0, 1.0]), 112.0);
        assert_eq!(distance([10.0, 7.0], [20.0, 7.0]), 1114.0);
        // 0.30 is half a degree, 55.66 km.
        assert_eq!(distance([0.0, 0.0], [0.30, 0.0]), 56.0);
        // -0.30 is half a degree south: -1 + 0.70 by rounding would be 55 minutes.
        assert_eq!(distance([0.0, 0.0], [-0.30, 0.0]), 56.0);
        // 1.40 and -1.40 are 1 degree 40 minutes: 3.3333 degrees apart, 371.08 km. Rounding would not change these degrees.
        assert_eq!(distance([1.40, 0.0], [-1.40, 0.0]), 372.0);
        // 1.55 is 1 degree 55 minutes, 213.37 km; rounding would make it 2 - 0.45 x 5 / 3 degrees, 139.15 km.
        assert_eq!(distance([1.55, 0.0], [0.0, 0.0]), 214.0);
        assert_eq!(distance([47.5, 8.3], [47.5, 8.3]), 1.0);
        // Half around the earth, 20038.29 km with TSPLIB's pi, from a pole to the other.
        assert_eq!(distance([90.0, 0.0], [-90.0, 0.0]), 20039.0);
        // The first cities of ulysses16 and their distance, 509 by the problem's known tour.
        assert_eq!(distance([38.24, 20.42], [39.57, 26.15]), 509.0);
    }

    proptest! {
        #[test]
        fn distances_are_symmetric_and_whole(
            a in prop::array::uniform3(-180.0f64..180.0),
            b in prop::array::uniform3(-180.0f64..180.0),
        ) {
            for metric in ALL {
                let distance = metric.distance(a, b);
                prop_assert!(distance >= 0.0 && distance.fract() == 0.0, "{:?}", metric);
                prop_assert_eq!(distance, metric.distance(b, a), "{:?}", metric);
            }
        }

        #[test]
        fn roundings_are_near_each_other(
            a in prop::array::uniform3(-1e4f64..1e4),
            b in prop::array::uniform3(-1e4f64..1e4),
        ) {
            let exact = (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt();
            let [nearest, ceiling, att, _, manhattan, maximum] = ALL.map(|metric| metric.distance(a, b));
            prop_assert!((nearest - exact).abs() <= 0.5);
            prop_assert!((exact..exact + 1.0).contains(&ceiling));
            prop_assert!((0.0..1.0).contains(&(att - exact / 10f64.sqrt() + 1e-9)));
            prop_assert!(maximum <= nearest + 1.0 && nearest <= manhattan + 1.0);
        }

        #[test]
        fn any_coordinates_have_a_distance_or_infinity(
            a in prop::array::uniform3(-f64::MAX..f64::MAX),
            b in prop::array::uniform3(-f64::MAX..f64::MAX),
        ) {
            for metric in ALL {
                if metric != Metric::Geographical {
                    let distance = metric.distance(a, b);
                    prop_assert!(distance.fract() == 0.0 || distance == f64::INFINITY, "{:?} {}", metric, distance);
                }
            }
        }
    }
}
