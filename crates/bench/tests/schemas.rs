//! JSON schemas of the requests and reports of benchmarks and applications. The types in other languages are generated from them.

use nicety::TrafficReport;
use nicety::report::{LinkReport, NetworkPortReport, NodeCounts};
use nicety_apps::{cardinality, tsp};
use nicety_bench::{Report, Request, channels, fairness, grid, pcie, pcsa, registration, sockets, torus};
use nicety_line_rate as line_rate;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Returns the schemas of all reports and requests, with their names. A schema follows the schemas of its parts.
pub fn schemas() -> Vec<(String, Value)> {
    let mut reports = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let whole = [
        named::<Report>("Report", &mut reports),
        named::<line_rate::Report>("LineRateReport", &mut reports),
        named::<line_rate::profile::Report>("ProfileReport", &mut reports),
        named::<line_rate::CheckReport>("CheckReport", &mut reports),
        named::<line_rate::xdp::Report>("XdpBenchReport", &mut reports),
        named::<channels::Report>("ChannelBenchReport", &mut reports),
        named::<registration::Report>("RegistrationReport", &mut reports),
        named::<fairness::Report>("FairnessReport", &mut reports),
        named::<grid::Report>("GridReport", &mut reports),
        named::<torus::Report>("TorusReport", &mut reports),
        named::<sockets::Report<sockets::StreamRow>>("StreamReport", &mut reports),
        named::<sockets::Report<sockets::ExchangeRow>>("ExchangeReport", &mut reports),
        named::<pcie::Report>("PcieReport", &mut reports),
        named::<pcsa::Report>("ContextReport", &mut reports),
        named::<cardinality::Report>("CountReport", &mut reports),
        named::<tsp::Report>("TourReport", &mut reports),
    ];
    let mut requests = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    add::<(Request, line_rate::Request, channels::Request)>(&mut requests);
    add::<line_rate::xdp::Request>(&mut requests);
    add::<(registration::Request, fairness::Request, pcie::Request, pcsa::Request)>(&mut requests);
    add::<(grid::Request, torus::Request)>(&mut requests);
    add::<(sockets::StreamRequest, sockets::ExchangeRequest)>(&mut requests);
    add::<(cardinality::Request, tsp::Request)>(&mut requests);
    let mut made: Vec<(String, Value)> = reports.take_definitions(true).into_iter().chain(whole).collect();
    for (name, schema) in requests.take_definitions(true) {
        if made.iter().all(|(other, _)| *other != name) {
            made.push((name, schema));
        }
    }
    made
}

/// Returns the schemas of the results of a run for nodes and links, with their names.
pub fn run_schemas() -> Vec<(String, Value)> {
    let mut reports = SchemaSettings::draft2020_12().for_serialize().into_generator();
    add::<(NodeCounts, LinkReport, NetworkPortReport, TrafficReport)>(&mut reports);
    reports.take_definitions(true).into_iter().collect()
}

fn named<T: JsonSchema>(name: &str, generator: &mut SchemaGenerator) -> (String, Value) {
    (name.to_owned(), T::json_schema(generator).to_value())
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}
