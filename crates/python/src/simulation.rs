//! A run whose programs are Python coroutines.
//!
//! The simulation lives in a thread of its own, because it cannot move between threads. Python and it take turns: the
//! simulation tells a program's reply ([`Simulation::next`]) and stands still until it hears what that program does
//! next. So Python never runs while virtual time does, and memory that both see has one user at a time.

use crate::calls::{LOOK_EVERY, print_line, tell_large};
use crate::errors::{InputError, broken, guarded, raised};
use crate::report::report;
use crate::tables::Recording;
use nicety::remote::{Command, Driver, Loaded, Next, Reply, drive};
use nicety::{Allowed, Cluster, ClusterConfig, Error, HandlerNames, HostBytes, Run, Topology, cards};
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Memory of a host, for numpy and others through the buffer protocol. It never moves or shrinks.
#[pyclass(frozen)]
pub struct HostMemory(Arc<HostBytes>);

#[pymethods]
impl HostMemory {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// # Safety
    /// `view` is Python's own, valid for writing.
    unsafe fn __getbuffer__(slf: PyRef<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.0;
        let length = isize::try_from(bytes.len()).map_err(|_| PyBufferError::new_err("too long"))?;
        let start = bytes.as_ptr().cast::<c_void>();
        // SAFETY: `view` comes from Python; `start` is valid for `length` bytes as long as `slf` lives, which
        // the view keeps alive, and the memory never moves.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 0, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// What the simulation tells Python.
enum Told {
    Reply { rank: u32, thread: u32, reply: Reply },
    Ended,
}

struct Running {
    told: Receiver<Told>,
    next: Sender<Next>,
    thread: JoinHandle<Result<Run, Error>>,
}

/// A cluster whose programs are driven from Python: `start`, then `next` and one answer to each, until there is none.
#[pyclass]
pub struct Simulation {
    config: ClusterConfig,
    interrupt: Arc<AtomicBool>,
    running: Mutex<Option<Running>>,
    /// What faults had done when the run ended.
    fault_notes: Arc<Mutex<String>>,
}

/// What `next` gives: rank, thread, picoseconds, JSON of the result, the error instead, memory just allocated.
type Step = (u32, u32, u64, Option<String>, Option<PyErr>, Option<HostMemory>);

#[pymethods]
impl Simulation {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python names them, and gives most a default")]
    #[pyo3(signature = (nodes, nic, topology, seed, overrides, shards, noise=None, recording="summary", recorded_rows=None, faults=None, uids=Vec::new()))]
    fn new(
        nodes: u32,
        nic: &str,
        topology: &str,
        seed: u64,
        overrides: Vec<String>,
        shards: usize,
        noise: Option<&str>,
        recording: &str,
        recorded_rows: Option<usize>,
        faults: Option<&str>,
        uids: Vec<u32>,
    ) -> PyResult<Self> {
        let interrupt = Arc::new(AtomicBool::new(false));
        let config = guarded(|| {
            let card = cards::load(nic, &overrides)?;
            let default = ClusterConfig::new(nodes, card);
            let config = ClusterConfig {
                recording: recording.parse().map_err(Error::Input)?,
                recorded_rows: recorded_rows.unwrap_or(default.recorded_rows),
                topology: topology.parse::<Topology>()?,
                noise: noise.map(str::parse).transpose()?,
                faults: faults.map(nicety::faults::parse).transpose()?.unwrap_or_default(),
                uids,
                seed,
                shards,
                interrupt: Some(interrupt.clone()),
                log: Arc::new(print_line),
                large: tell_large,
                // Python says what of it was not asked for.
                allowed: Allowed::ALL,
                ..default
            };
            // Whether such a cluster can be built is worth knowing before there are programs. A thread of its own leaves
            // its memory to the run's, and so a large cluster takes it once.
            let tried = config.clone();
            let built = std::thread::spawn(move || Cluster::new(tried).map(drop)).join();
            built.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(config)
        })?;
        Ok(Simulation { config, interrupt, running: Mutex::new(None), fault_notes: Arc::default() })
    }

    /// The instruction set that handlers are compiled for.
    fn isa(&self) -> PyResult<String> {
        let isa = self.config.card.spec.isa().ok_or_else(|| {
            let name = &self.config.card.listing.name;
            InputError::new_err(format!(
                "card {name} runs no programs of its own, so there is nothing to compile for"
            ))
        })?;
        Ok(isa.to_owned())
    }

    /// Starts programs on these ranks.
    fn start(&self, ranks: Vec<u32>) -> PyResult<()> {
        if let Some(rank) = ranks.iter().find(|&&rank| rank >= self.config.nodes) {
            return Err(InputError::new_err(format!(
                "there is no rank {rank}; the cluster has ranks 0 to {}",
                self.config.nodes - 1
            )));
        }
        let (tell, told) = channel();
        let (next, heard) = channel::<Next>();
        let (config, notes) = (self.config.clone(), self.fault_notes.clone());
        let thread = std::thread::spawn(move || {
            let heard = Rc::new(heard);
            let result = Cluster::new(config).and_then(|mut cluster| {
                let loaded = Loaded::default();
                for rank in ranks {
                    let (tell, heard) = (tell.clone(), heard.clone());
                    let stopped = || Next::Failed("the run was stopped".to_string());
                    let driver = move |thread| -> Driver {
                        let (tell, heard) = (tell.clone(), heard.clone());
                        Box::new(move |reply| match tell.send(Told::Reply { rank, thread, reply }) {
                            Ok(()) => heard.recv().unwrap_or_else(|_| stopped()),
                            Err(_) => stopped(),
                        })
                    };
                    cluster.program(rank, |host| drive(host, loaded.clone(), Rc::new(driver)));
                }
                let run = cluster.run();
                // Nobody panics with it.
                if let Ok(mut notes) = notes.lock() {
                    *notes = cluster.fault_notes();
                }
                run
            });
            // Python may have given up already.
            drop(tell.send(Told::Ended));
            result
        });
        *self.lock()? = Some(Running { told, next, thread });
        Ok(())
    }

    /// Waits until a program goes on; none once the run has ended.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Step>> {
        loop {
            let told = py.detach(|| match &*self.lock()? {
                None => Err(PyRuntimeError::new_err("the run was not started")),
                Some(running) => Ok(running.told.recv_timeout(LOOK_EVERY)),
            })?;
            match told {
                Ok(Told::Reply { rank, thread, reply }) => {
                    let (result, error) = match reply.result {
                        Ok(value) => (Some(value.to_string()), None),
                        Err(error) => (None, Some(raised(&error))),
                    };
                    return Ok(Some((
                        rank,
                        thread,
                        reply.now_ps,
                        result,
                        error,
                        reply.memory.map(HostMemory),
                    )));
                }
                Ok(Told::Ended) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            }
        }
    }

    /// The program that goes on asks for something; JSON.
    fn ask(&self, command: &str) -> PyResult<()> {
        let command: Command = guarded(|| {
            serde_json::from_str(command).map_err(|error| Error::Input(format!("a host's call: {error}")))
        })?;
        self.tell(Next::Command(command))
    }

    /// The program that goes on has handlers for its card.
    fn load(
        &self,
        elf: Vec<u8>,
        header: Option<String>,
        payload: Option<String>,
        completion: Option<String>,
    ) -> PyResult<()> {
        self.tell(Next::Load { elf, names: HandlerNames { header, payload, completion } })
    }

    /// The program that goes on has processes for its card.
    fn load_processes(&self, elf: Vec<u8>) -> PyResult<()> {
        self.tell(Next::LoadProcesses { elf })
    }

    /// The program that goes on is over.
    fn finished(&self) -> PyResult<()> {
        self.tell(Next::Finished)
    }

    /// The program that goes on has failed.
    fn failed(&self, why: String) -> PyResult<()> {
        self.tell(Next::Failed(why))
    }

    /// What the network's faults had done to packets when the run ended, where cards do not make up for it; a text that
    /// begins on a line of its own, and is empty where that is nothing.
    fn fault_notes(&self) -> String {
        self.fault_notes.lock().map_or_else(|_| String::new(), |notes| notes.clone())
    }

    /// Ends the run, whatever it is doing, and gives its report as JSON, and its recording.
    fn end(&self, py: Python<'_>, stop: bool) -> PyResult<(String, Recording)> {
        if stop {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        let Some(Running { told, next, thread }) = self.lock()?.take() else {
            return Err(PyRuntimeError::new_err("the run was not started"));
        };
        // Without them the programs' stand-ins stop.
        drop((told, next));
        let result = py.detach(|| thread.join()).map_err(|panic| broken(&*panic))?;
        let run = guarded(|| result)?;
        Ok((report(&run), Recording(run.recording)))
    }
}

impl Simulation {
    fn lock(&self) -> PyResult<std::sync::MutexGuard<'_, Option<Running>>> {
        self.running.lock().map_err(|_| PyRuntimeError::new_err("the run broke off"))
    }

    fn tell(&self, next: Next) -> PyResult<()> {
        let running = self.lock()?;
        let running = running.as_ref().ok_or_else(|| PyRuntimeError::new_err("the run was not started"))?;
        running.next.send(next).map_err(|_| PyRuntimeError::new_err("the run has ended"))
    }
}
