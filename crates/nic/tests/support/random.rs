//! How many random cases a test tries.

use proptest::prelude::ProptestConfig;

/// `usual` cases; as many times more in a long run as PROPTEST_CASES is above proptest's own default.
pub fn cases(usual: u32) -> ProptestConfig {
    const DEFAULT: u32 = 256;
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(usual * ProptestConfig::default().cases / DEFAULT)
    }
}
