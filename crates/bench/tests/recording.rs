//! The recording of a benchmark's first point.

use nicety::Environment;
use nicety::record::{Level, Recording, Starter};
use nicety_bench::{self as bench, Request};
use std::cell::RefCell;

#[test]
fn a_benchmark_hands_over_its_first_point() {
    let request = |mode: &str| {
        Request::from_json(&format!(
            r#"{{"benchmark": "latency", "nics": ["spin-discrete"], "modes": ["{mode}"], "sizes": [8, 64],
                "iterations": 2, "warmup": 0}}"#
        ))
        .unwrap()
    };
    let environment = Environment::default();
    for (mode, by) in [("rdma", Starter::Host), ("portals4", Starter::Trigger)] {
        let recordings: RefCell<Vec<Recording>> = RefCell::default();
        let take = |recording| recordings.borrow_mut().push(recording);
        let report = bench::run_recorded(&request(mode), &environment, &take).unwrap();
        assert_eq!(report, bench::run(&request(mode), &environment).unwrap());
        let recordings = recordings.into_inner();
        assert_eq!(recordings.len(), 1);
        assert_eq!(recordings[0].level, Level::Everything);
        let messages: Vec<_> = recordings[0].messages().collect();
        assert_eq!(
            messages.iter().map(|m| (m.id.source.0, m.bytes)).collect::<Vec<_>>(),
            [(0, 8), (0, 8), (1, 8), (1, 8)]
        );
        assert!(messages[2..].iter().all(|m| m.by == by && m.stages.is_some()), "{messages:?}");
    }
}
