//! Times in reports.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A time, written in nanoseconds. A whole number is written without decimals, and any other number with up to three for
/// picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ns {
    /// The time in picoseconds.
    pub ps: u64,
}

impl Serialize for Ns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.ps % 1000 {
            0 => serializer.serialize_u64(self.ps / 1000),
            _ => serializer.serialize_f64(self.ps as f64 / 1000.0),
        }
    }
}

impl JsonSchema for Ns {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Ns".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        f64::json_schema(generator)
    }
}
