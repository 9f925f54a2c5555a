//! The number of random cases of a test.

use proptest::prelude::ProptestConfig;

/// Returns a configuration with `usual` cases. If PROPTEST_CASES is set, the number of cases is multiplied by the ratio
/// of PROPTEST_CASES to proptest's default.
pub fn cases(usual: u32) -> ProptestConfig {
    const DEFAULT: u32 = 256;
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(usual * ProptestConfig::default().cases / DEFAULT)
    }
}
