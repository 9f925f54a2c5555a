//! The processes of a program of hosts under a debugger: a session over several runs of the program.

use nicety::{Cluster, Error};
use nicety_debug::{End, Listener, Session};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The end of a session with processes.
#[derive(Clone, Debug, Serialize)]
pub struct EndOfSession {
    /// The end: `complete`, `killed`, `interrupted`, or `lost` where the connection was lost.
    pub end: &'static str,
    /// The reason of a lost connection.
    pub lost: Option<String>,
    /// Stops of the debugger.
    pub stops: u64,
    /// Processes of the debugged program in the last run.
    pub processes: u64,
}

/// A session with the processes of one program, on one card of a cluster.
pub struct ProcessSession {
    session: Rc<Session>,
    listener: RefCell<Option<Listener>>,
    port: u16,
    interrupted: Rc<dyn Fn() -> bool>,
}

impl ProcessSession {
    /// Listens to a port of the loopback interface, 0 for any free one. `interrupted` says whether the user wants to end.
    ///
    /// # Errors
    /// A port in use.
    pub fn open(port: u16, interrupted: Rc<dyn Fn() -> bool>) -> Result<ProcessSession, Error> {
        let listener = Listener::open(port).map_err(|error| Error::Input(error.to_string()))?;
        let own = interrupted.clone();
        Ok(ProcessSession {
            session: Rc::new(Session::new(Box::new(move || own()))),
            port: listener.port(),
            listener: RefCell::new(Some(listener)),
            interrupted,
        })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Prepares for a run. Returns the flag that ends this run early.
    pub fn begins(&self) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.session.begins(stop.clone());
        stop
    }

    /// Observes the processes of a host's first card.
    ///
    /// # Errors
    /// When the card has no processes.
    pub fn observe(&self, cluster: &Cluster, rank: u32) -> Result<(), Error> {
        cluster.host(rank).channels()?.observed_by(self.session.clone());
        Ok(())
    }

    /// Waits for a debugger, after the first run.
    ///
    /// # Errors
    /// Those of the socket, and an interrupt.
    pub fn accept(&self) -> Result<(), Error> {
        let Some(listener) = self.listener.borrow_mut().take() else { return Ok(()) };
        let wire = listener.accept(&*self.interrupted);
        let wire = wire.map_err(|error| Error::Program(format!("no debugger connected: {error}")))?;
        self.session.connect(wire.ok_or(Error::Interrupted)?);
        Ok(())
    }

    /// Whether the program must be run again: after the first run if a process ran, and after a way back in time.
    pub fn repeats(&self) -> bool {
        self.session.repeats()
    }

    /// Whether the session has abandoned the last run.
    pub fn left(&self) -> bool {
        self.session.leaves()
    }

    /// The name of the first process's function, if there was one.
    pub fn first(&self) -> Option<String> {
        self.session.first()
    }

    /// Reports the end of the last run to the debugger.
    pub fn finish(&self, failed: bool) -> EndOfSession {
        let processes = self.session.runs();
        let (end, stops) = self.session.finish(failed.into());
        let (end, lost) = match end {
            End::Complete => ("complete", None),
            End::Killed => ("killed", None),
            End::Interrupted => ("interrupted", None),
            End::Lost(why) => ("lost", Some(why)),
        };
        EndOfSession { end, lost, stops, processes }
    }
}
