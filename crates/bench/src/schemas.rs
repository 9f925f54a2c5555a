//! JSON schemas of what benchmarks are asked for and what they find, from which the types of other languages are made.

use crate::{PointFailure, Request, Row};
use crate::{channels, fairness, line_rate, pcsa, registration};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The schemas of the rows of all reports, and of all requests, each with what they are made of, by name.
pub fn schemas() -> Vec<(String, Value)> {
    let mut rows = SchemaSettings::draft2020_12().for_serialize().into_generator();
    add::<(Row, PointFailure, line_rate::Row, channels::Row)>(&mut rows);
    add::<(registration::Row, registration::Crossover, fairness::Row, pcsa::Row)>(&mut rows);
    let mut requests = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    add::<(Request, line_rate::Request, channels::Request)>(&mut requests);
    add::<(registration::Request, fairness::Request, pcsa::Request)>(&mut requests);
    [rows, requests].into_iter().flat_map(|mut made| made.take_definitions(true)).collect()
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}
