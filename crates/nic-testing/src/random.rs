//! The number of random cases of a test.

use proptest::prelude::ProptestConfig;

/// `usual` cases. A long run multiplies them by the ratio of PROPTEST_CASES to proptest's own default.
pub fn cases(usual: u32) -> ProptestConfig {
    const DEFAULT: u32 = 256;
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(usual * ProptestConfig::default().cases / DEFAULT)
    }
}
