//! XDP programs. Object files are bytes, and requests and reports are JSON.

use crate::calls::{report, text};
use crate::errors::{InputError, guarded};
use nicety_ebpf::Object;
use nicety_ebpf::report::{RunRequest, Timed, choose, run, show};
use nicety_line_rate::xdp::{Request, run as bench};
use nicety_traffic::capture::{self, Capture, link_name};
use nicety_xdp::Request as CardRequest;
use pyo3::prelude::*;

/// The link type of Ethernet in a capture.
const ETHERNET: u32 = 1;

fn invalid(error: impl ToString) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Returns the programs and maps of an object file, as JSON.
#[pyfunction]
pub fn xdp_show(file: &[u8]) -> PyResult<String> {
    Ok(text(&show(file).map_err(invalid)?))
}

/// Returns whether an object file has a program of any type.
#[pyfunction]
pub fn xdp_has_program(file: &[u8]) -> PyResult<bool> {
    Object::has_program(file).map_err(invalid)
}

/// Checks that an object file has the program and the maps of a request, without a run. `maps` are names, and entries as JSON.
#[pyfunction]
pub fn xdp_choose(file: &[u8], program: Option<&str>, maps: Vec<(String, String)>) -> PyResult<()> {
    choose(file, program, &maps).map_err(invalid)
}

/// Returns the rows of a program for a card with an eBPF core, as JSON; None for other cards.
#[pyfunction]
#[pyo3(signature = (file, nic, program=None))]
pub fn xdp_rows(file: &[u8], nic: &str, program: Option<&str>) -> PyResult<Option<String>> {
    let report = guarded(|| nicety_line_rate::xdp_rows(file, nic, program))?;
    Ok(report.map(|report| text(&report)))
}

/// Returns the rows of a published program for a card with an eBPF core, as JSON; None for other cards. `text` is its dump.
#[pyfunction]
pub fn xdp_dump_rows(name: &str, text: &str, nic: &str) -> PyResult<Option<String>> {
    let report = guarded(|| nicety_line_rate::xdp_dump_rows(name, text, nic))?;
    Ok(report.map(|report| crate::calls::text(&report)))
}

/// Runs a program of an object file on packets. Request and report are JSON. `packets` has the bytes of one packet, or a capture
/// from an Ethernet link. Ctrl-C ends the run.
#[pyfunction]
pub fn xdp_run(py: Python<'_>, file: &[u8], request: &str, packets: &[u8]) -> PyResult<String> {
    let request: RunRequest = guarded(|| nicety::from_json(request, "request"))?;
    let packets = frames(packets)?;
    let mut raised = None;
    let mut go_on = || {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_none()
    };
    let report = py.detach(|| run(file, &request, &packets, &mut go_on));
    match (raised, report.map_err(invalid)?) {
        (Some(error), _) => Err(error),
        (None, report) => Ok(text(&report)),
    }
}

/// Runs a program of an object file in the drivers of hosts. Request and report are JSON. Calls `progress(done, total)`
/// during the run. Ctrl-C ends the run.
#[pyfunction]
pub fn xdp_bench(
    py: Python<'_>,
    file: Vec<u8>,
    request: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = guarded(|| Request::from_json(request))?;
    report(py, progress, move |environment| bench(&file, &request, environment))
}

/// Translates a program for a card. Request and result are JSON. The result is the assembly of the program's code, maps
/// and data.
#[pyfunction]
pub fn xdp_build(py: Python<'_>, file: &[u8], request: &str) -> PyResult<String> {
    let request: CardRequest = guarded(|| nicety::from_json(request, "request"))?;
    Ok(text(&py.detach(|| nicety_xdp::build(file, &request)).map_err(invalid)?))
}

/// Writes the initial contents of the maps into the linked program `elf`, and returns the program.
#[pyfunction]
pub fn xdp_finish(py: Python<'_>, file: &[u8], elf: &[u8], request: &str) -> PyResult<Vec<u8>> {
    let request: CardRequest = guarded(|| nicety::from_json(request, "request"))?;
    py.detach(|| nicety_xdp::finish(file, elf, &request)).map_err(invalid)
}

/// Returns the maps with these names, and the counters after a run, as JSON. `data` is the data of the card's program.
/// `returned` is the number of frames for each destination.
#[pyfunction]
pub fn xdp_after(
    py: Python<'_>,
    file: &[u8],
    elf: &[u8],
    data: Vec<u8>,
    request: &str,
    returned: &str,
    names: Vec<String>,
) -> PyResult<String> {
    let request: CardRequest = guarded(|| nicety::from_json(request, "request"))?;
    let returned = guarded(|| nicety::from_json(returned, "frames by destination"))?;
    let after = || nicety_xdp::after(file, elf, data, &request, (&returned, &names));
    Ok(text(&py.detach(after).map_err(invalid)?))
}

/// Returns the packets of a capture, with their times since the first packet. Bytes that do not begin as a file are a single
/// packet without a time.
fn frames(bytes: &[u8]) -> PyResult<Vec<Timed>> {
    if !capture::begins_as_file(bytes) {
        return Ok(vec![(bytes.to_vec(), None)]);
    }
    let mut capture = Capture::new(capture::in_memory(bytes.to_vec()).map_err(invalid)?).map_err(invalid)?;
    let (mut frames, mut first) = (Vec::new(), None);
    while let Some(packet) = capture.next_packet() {
        let packet = packet.map_err(invalid)?;
        if packet.link != ETHERNET {
            let name =
                link_name(packet.link).map_or_else(|| format!("link type {}", packet.link), str::to_owned);
            return Err(invalid(format!("a capture of {name}; capture Ethernet frames")));
        }
        if packet.length > packet.bytes.len() as u64 {
            let number = frames.len() + 1;
            return Err(invalid(format!(
                "packet {number} is cut short; capture whole packets (tcpdump -s 0)"
            )));
        }
        let time = packet.time.map(|time| time / 1000);
        let begin = *first.get_or_insert(time);
        let since = time.zip(begin).map(|(time, begin)| u64::try_from(time - begin).unwrap_or(0));
        frames.push((packet.bytes.to_vec(), since));
    }
    if frames.is_empty() {
        return Err(invalid("there is no packet in it; name a capture with packets"));
    }
    Ok(frames)
}
