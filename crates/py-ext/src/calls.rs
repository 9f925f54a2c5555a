//! Functions for Python with texts as arguments and results.

use crate::capture;
use crate::errors::{broken, guarded};
use crate::peers;
use crate::tables::Recording;
use nicety::{Compiled, Environment};
use nicety::{Error, LargeCluster, Logged, cards};
use nicety_bench::{self as benches, Request};
use nicety_hpu::{Core, Image, Isa, bare, is_wide};
use nicety_line_rate as line_rate;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde_json::json;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Real time between two checks for Ctrl-C in a call that waits.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns the version of nicety.
#[pyfunction]
pub fn version() -> &'static str {
    nicety::VERSION
}

/// Returns the shipped cards as JSON: a list of objects with `name` and `title`.
#[pyfunction]
pub fn specs() -> PyResult<String> {
    let cards = guarded(cards::shipped)?;
    let card = |(name, title): &(String, String)| json!({"name": name, "title": title});
    Ok(json!(cards.iter().map(card).collect::<Vec<_>>()).to_string())
}

/// Returns a card with all its values, as JSON.
#[pyfunction]
pub fn spec_show(name_or_path: &str, overrides: Vec<String>) -> PyResult<String> {
    let listing = guarded(|| cards::load(name_or_path, &overrides))?.listing;
    let parameters: Vec<_> = listing
        .parameters
        .iter()
        .map(|p| {
            json!({
                "key": format!("{}.{}", p.section, p.key),
                "value": p.value,
                "exact": p.exact,
                "quantity": p.quantity,
                "doc": p.doc,
                "allowed": p.allowed,
                "kind": p.kind.name(),
                "source": p.source,
                "note": p.note,
                "against": p.against,
                "where": p.place,
                "replaces": p.replaces,
            })
        })
        .collect();
    Ok(json!({
        "name": listing.name,
        "title": listing.title,
        "design": listing.design,
        "paper": listing.paper,
        "source": listing.source,
        "extends": listing.extends,
        "hash": listing.hash,
        "parameters": parameters,
    })
    .to_string())
}

/// Checks the file of a card. The exception lists all errors.
#[pyfunction]
pub fn spec_check(path: &str) -> PyResult<()> {
    guarded(|| cards::load(path, &[]).map(drop))
}

/// Checks a description of network faults. The exception lists all errors.
#[pyfunction]
pub fn faults_check(text: &str) -> PyResult<()> {
    guarded(|| nicety::faults::parse(text).map(drop))
}

/// Returns the shipped C files: maps each file's path in the folder `handlers` to its text.
#[pyfunction]
pub fn handler_sources() -> BTreeMap<&'static str, &'static str> {
    nicety::sources::FILES.iter().copied().collect()
}

/// Maximum size of the output of a bare program, in bytes.
const WRITTEN: usize = 64 << 20;

/// The output of a bare program. It is passed to Python during the run, or kept until the end.
struct Output<'o> {
    write: Option<&'o Py<PyAny>>,
    kept: Vec<u8>,
    /// Number of bytes so far.
    written: usize,
    raised: &'o Mutex<Option<PyErr>>,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written += bytes.len();
        if self.written > WRITTEN {
            return Err(io::Error::other(format!("it is more than {WRITTEN} bytes")));
        }
        match self.write {
            None => self.kept.extend_from_slice(bytes),
            Some(write) => Python::attach(|py| write.call1(py, (bytes,))).map(drop).map_err(|error| {
                *self.raised.lock().expect("no holder panics") = Some(error);
                io::Error::other("the program's output is not accepted")
            })?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a bare program on a handler core. Returns a report as JSON, and the program's output. If `write` is given, it
/// receives the output instead. Ctrl-C ends the run.
#[pyfunction]
#[pyo3(signature = (elf, entry, max_cycles, spec, write=None))]
pub fn hpu_run(
    py: Python<'_>,
    elf: &[u8],
    entry: Option<&str>,
    max_cycles: Option<u64>,
    spec: Option<&str>,
    write: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<u8>)> {
    let raised = Mutex::new(None);
    let result = py.detach(|| {
        guarded(|| {
            let core = match spec {
                // The program determines the width of the registers. If the file is no program, the load below fails.
                None if is_wide(elf).unwrap_or(false) => Core { isa: Isa::RV64IMAC, ..Core::default() },
                None => Core::default(),
                Some(name) => *cards::load(name, &[])?.spec.core().ok_or_else(|| {
                    Error::Input(format!("card {name} runs no programs of its own; name another card"))
                })?,
            };
            let wrong = |text: String| Error::Input(text);
            let image = Image::load(elf, &core).map_err(|error| wrong(error.to_string()))?;
            let output = Output { write: write.as_ref(), kept: Vec::new(), written: 0, raised: &raised };
            let mut output = BufWriter::with_capacity(64 << 10, output);
            let limit = max_cycles.unwrap_or(bare::DEFAULT_CYCLES);
            let mut go_on = || match Python::attach(|py| py.check_signals()) {
                Ok(()) => true,
                Err(error) => {
                    *raised.lock().expect("no holder panics") = Some(error);
                    false
                }
            };
            let result = bare::run_while(&image, entry, limit, &mut output, &mut go_on)
                .map_err(|error| wrong(error.to_string()))?;
            let report = json!({
                "exit_code": result.exit_code,
                "instructions": result.instructions,
                "cycles": result.cycles,
                "cycle_limit": limit,
                "trap": result.trap.map(|trap| trap.to_string()),
            });
            let output = output.into_inner().map_err(|error| wrong(error.to_string()))?;
            Ok((report.to_string(), output.kept))
        })
    });
    match raised.into_inner().expect("no holder panics") {
        Some(error) => Err(error),
        None => result,
    }
}

/// Returns the programs to compile for a benchmark. Request and result are JSON.
#[pyfunction]
pub fn bench_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| benches::plan(&Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Returns a value as JSON. The fields are in the order of the type's definition.
pub fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data with text keys")
}

/// Prints a line of output from a handler to standard error. If standard error is closed, the line is lost.
pub fn print_line(logged: &Logged) {
    let _ = writeln!(io::stderr().lock(), "{logged}");
}

/// Announces the memory of a large cluster, once for each combination of number of hosts and card.
pub fn tell_large(cluster: &LargeCluster) {
    static TOLD: Mutex<BTreeSet<(u64, String)>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().expect("no holder panics");
    if told.insert((cluster.hosts, cluster.card.clone())) {
        let _ = writeln!(io::stderr().lock(), "nicety: {cluster}");
    }
}

/// A benchmark. It takes an environment, and returns a result.
pub type Benchmark<R> =
    dyn FnOnce(&Environment<'_>, Option<&dyn Fn(nicety::record::Recording)>) -> Result<R, Error> + Send;

/// Runs a benchmark in a separate thread, and returns its report as JSON. Calls `progress(done, total)` during the run.
/// Ctrl-C ends the run. If `record` is true, also returns the recording of the first point. The capture of the calling
/// thread gets the packets.
pub fn measure<R: Serialize + Send + 'static>(
    py: Python<'_>,
    elfs: Compiled,
    progress: Option<Py<PyAny>>,
    record: bool,
    benchmark: Box<Benchmark<R>>,
) -> PyResult<(String, Option<Recording>)> {
    measure_with_news(py, elfs, Listeners { progress, ..Listeners::default() }, record, benchmark)
}

/// A message from a running benchmark.
enum Update {
    Progress(usize, usize),
    News(String),
    Recorded(Box<nicety::record::Recording>),
}

/// Functions of Python that a benchmark calls during its run.
#[derive(Default)]
struct Listeners {
    progress: Option<Py<PyAny>>,
    news: Option<Py<PyAny>>,
    /// Gets the recording as soon as its run has ended. Without this function the benchmark returns the recording.
    recorded: Option<Py<PyAny>>,
    /// Whether an interrupt is an exception also if the benchmark has ended meanwhile. Other benchmarks report it.
    raises: bool,
}

/// Relays the messages of a benchmark to Python until the benchmark ends. Returns the first exception, if any. An exception also
/// sets the interrupt.
fn relay(
    py: Python<'_>,
    told: Receiver<Update>,
    listeners: &Listeners,
    interrupt: &AtomicBool,
) -> Option<PyErr> {
    // During the wait, Python's lock is released, so the receiver must be shareable between threads.
    let told = Mutex::new(told);
    let call = |called: &Option<Py<PyAny>>, act: &dyn Fn(&Py<PyAny>) -> PyResult<Py<PyAny>>| {
        called.as_ref().map_or(Ok(()), |called| act(called).map(drop))
    };
    let mut raised = None;
    loop {
        match py.detach(|| told.lock().expect("only this thread uses it").recv_timeout(LOOK_EVERY)) {
            Ok(update) => {
                let called = match update {
                    Update::Progress(done, total) => {
                        call(&listeners.progress, &|p| p.call1(py, (done, total)))
                    }
                    Update::News(text) => call(&listeners.news, &|n| n.call1(py, (text.as_str(),))),
                    Update::Recorded(recording) => tell_recording(py, listeners, *recording),
                };
                raised = raised.or(called.err());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return raised,
        }
        raised = raised.or(py.check_signals().err());
        if raised.is_some() {
            interrupt.store(true, Ordering::Relaxed);
        }
    }
}

fn tell_recording(
    py: Python<'_>,
    listeners: &Listeners,
    recording: nicety::record::Recording,
) -> PyResult<()> {
    listeners.recorded.as_ref().map_or(Ok(()), |called| called.call1(py, (Recording(recording),)).map(drop))
}

/// Does the same as [`measure`], but also calls other listeners.
fn measure_with_news<R: Serialize + Send + 'static>(
    py: Python<'_>,
    elfs: Compiled,
    listeners: Listeners,
    record: bool,
    benchmark: Box<Benchmark<R>>,
) -> PyResult<(String, Option<Recording>)> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    let (stop, capture, peers) = (interrupt.clone(), capture::current(), peers::current());
    // If there are several processes, only the first one prints the output of handlers.
    let is_first = peers.as_ref().is_none_or(|peers| peers.number() == 0);
    let (is_told, raises) = (listeners.recorded.is_some(), listeners.raises);
    let worker = std::thread::spawn(move || {
        let environment = Environment {
            compiled: &elfs,
            log: if is_first { Arc::new(print_line) } else { Arc::new(|_| ()) },
            interrupt: Some(stop),
            capture,
            peers,
            // After an interrupt, the receiver is gone and the message is dropped.
            progress: &|done, total| {
                let _ = tell.send(Update::Progress(done, total));
            },
            news: &|text| {
                let _ = tell.send(Update::News(text.to_owned()));
            },
        };
        let recording = RefCell::new(None);
        let keep = |first| match is_told {
            true => drop(tell.send(Update::Recorded(Box::new(first)))),
            false => *recording.borrow_mut() = Some(first),
        };
        let report = benchmark(&environment, if record { Some(&keep) } else { None });
        report.map(|report| (report, recording.into_inner()))
    });
    let raised = relay(py, told, &listeners, &interrupt);
    let result = py.detach(|| worker.join()).map_err(|panic| broken(&*panic))?;
    match (raised, result) {
        // A benchmark that Ctrl-C ended reports the interrupt, and the rows that were finished.
        (Some(error), Ok(_)) if raises || !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        (Some(error), Err(_)) => Err(error),
        (_, result) => {
            let (report, recording) = guarded(|| result)?;
            Ok((text(&report), recording.map(Recording)))
        }
    }
}

/// Does the same as [`measure`], for a benchmark without compiled programs and without a recording.
pub fn report<R: Serialize + Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    benchmark: impl FnOnce(&Environment<'_>) -> Result<R, Error> + Send + 'static,
) -> PyResult<String> {
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| benchmark(environment);
    Ok(measure(py, BTreeMap::new(), progress, false, Box::new(run))?.0)
}

/// Runs a benchmark between hosts. Request and report are JSON. Calls `progress(done, total)` during the run. Ctrl-C
/// ends the run. If `record` is true, also returns the recording of the first point.
#[pyfunction]
#[pyo3(signature = (request, elfs, progress, record=false))]
pub fn bench(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
    record: bool,
) -> PyResult<(String, Option<Recording>)> {
    let request = guarded(|| Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, recorded: Option<&dyn Fn(_)>| match recorded {
        Some(recorded) => benches::run_recorded(&request, environment, recorded),
        None => benches::run(&request, environment),
    };
    measure(py, elfs, progress, record, Box::new(run))
}

/// Returns the programs to compile for a line-rate check. Request and result are JSON.
#[pyfunction]
pub fn line_rate_plan(request: &str) -> PyResult<String> {
    let plan = guarded(|| line_rate::plan(&line_rate::Request::from_json(request)?))?;
    Ok(text(&plan))
}

/// Returns a packet that a port of a line-rate check's first card gets, or None behind the last one.
#[pyfunction]
pub fn line_rate_frame(
    py: Python<'_>,
    request: &str,
    port: u32,
    number: u64,
) -> PyResult<Option<Py<PyBytes>>> {
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let frame = py.detach(|| guarded(|| line_rate::frame(&request, port, number)))?;
    Ok(frame.map(|bytes| PyBytes::new(py, &bytes).unbind()))
}

/// Profiles handlers, as `bench` runs a benchmark. The plan is that of a line-rate check.
#[pyfunction]
pub fn profile_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| {
        line_rate::profile::profile(&request, environment)
    };
    Ok(measure(py, elfs, progress, false, Box::new(run))?.0)
}

/// Checks handlers under the checker, in this number of interleavings. Request and report are JSON.
#[pyfunction]
pub fn check_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    schedules: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| {
        line_rate::check_handlers(&request, schedules, environment)
    };
    let listeners = Listeners { progress, raises: true, ..Listeners::default() };
    Ok(measure_with_news(py, elfs, listeners, false, Box::new(run))?.0)
}

/// Sends the packets of a check, or of a profile, without either. Request and report are JSON.
#[pyfunction]
pub fn plain_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    of_profile: bool,
) -> PyResult<String> {
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| {
        line_rate::run_plain(&request, environment, of_profile)
    };
    Ok(measure(py, elfs, None, false, Box::new(run))?.0)
}

/// The results of a line-rate check: the report, the recording, and for each row the data of its program after the
/// first run.
type LineRate = (String, Option<Recording>, Vec<Option<Vec<u8>>>);

/// Runs a line-rate check, as `bench` does. Also calls `news(text)` with preliminary results of a row. With
/// `recorded`, the recording is the argument of `recorded(recording)`, as soon as its run has ended, and is not returned.
#[pyfunction]
#[pyo3(signature = (request, elfs, progress, record=false, news=None, recorded=None))]
pub fn line_rate_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    progress: Option<Py<PyAny>>,
    record: bool,
    news: Option<Py<PyAny>>,
    recorded: Option<Py<PyAny>>,
) -> PyResult<LineRate> {
    let listeners = Listeners { progress, news, recorded, raises: false };
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let (leave, left) = channel();
    let run = move |environment: &Environment<'_>, recorded: Option<&dyn Fn(_)>| {
        let mut report = line_rate::run(&request, environment, recorded)?;
        // The receiver exists until the run has ended, so the send cannot fail.
        let rows = report.on_cards.rows.iter_mut().map(|row| row.program_data.take());
        let flow = report.flow_processors.iter_mut().map(|row| row.program_data.take());
        let _ = leave.send(rows.chain(flow).collect());
        Ok(report)
    };
    let (text, recording) = measure_with_news(py, elfs, listeners, record, Box::new(run))?;
    Ok((text, recording, left.try_recv().unwrap_or_default()))
}

/// Runs a program under a debugger, which connects to `port` of the loopback interface. Calls `listening(port)`. Request and
/// report are JSON.
#[pyfunction]
pub fn debug_run(
    py: Python<'_>,
    request: &str,
    elfs: BTreeMap<String, Vec<u8>>,
    port: u16,
    listening: Option<Py<PyAny>>,
) -> PyResult<String> {
    let listeners = Listeners { news: listening, ..Listeners::default() };
    let request = guarded(|| line_rate::Request::from_json(request))?;
    let run = move |environment: &Environment<'_>, _: Option<&dyn Fn(_)>| {
        line_rate::debug(&request, environment, port, &|port| (environment.news)(&port.to_string()))
    };
    Ok(measure_with_news(py, elfs, listeners, false, Box::new(run))?.0)
}
