//! The processes of one run, on one or several machines. They are started together, for example by MPI.
//!
//! All processes run the same command and meet in rounds. In a round, each process sends one of the following to every other
//! process:
//!
//! - between two windows of virtual time, the messages for the other process's part of the simulation;
//! - at the end of its part, the result of the part;
//! - at the end of its command, the status of the command.
//!
//! A process that ends early sends its status in its last round. This interrupts the run of the others, and no round follows.

use crate::Error;
use nicety_kernel::{Parts, Threads};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::iter;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// An exchange of bytes between processes.
pub trait Exchange: Send + Sync {
    /// Sends bytes to each process, and returns the bytes that each process has sent to this one. Returns after all processes
    /// have made this call. Both lists are in the order of the processes' numbers. A process sends itself no bytes.
    ///
    /// # Errors
    /// When another process is out of reach, or the wait was interrupted.
    fn exchange(&self, bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error>;
}

/// One process of a run, with its connection to the other processes. A clone is the same process.
#[derive(Clone)]
pub struct Peers(Arc<Own>);

struct Own {
    number: usize,
    count: usize,
    exchange: Box<dyn Exchange>,
    /// The statuses of the processes in the last round, if a process has left. No round follows.
    left: OnceLock<Statuses>,
}

/// The status of each process; `None` for a process that has not left.
pub type Statuses = Vec<Option<u8>>;

/// The state that a process sends in a round. The state's bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ProcessState {
    /// The part is at the end of a window. The messages for the other part follow.
    Met(u64),
    /// The part has ended. Its result follows.
    Ended,
    /// The part has failed, or was interrupted.
    Failed,
    Interrupted,
    /// The command has ended with this status.
    Left(u8),
}

/// The joint outcome of all parts of a run. All processes get the same outcome.
pub enum Outcome<T> {
    /// All parts have ended. The results are in the order of the processes.
    Ended(Vec<T>),
    /// A part has failed. The outcome has no error, because the process of a part knows only this part of the run.
    Failed,
    /// A part was interrupted, or a process has left.
    Interrupted,
}

/// The reason why the rounds of a part stop before the part has a result.
enum Cut {
    Failed,
    Interrupted,
    Broken(Error),
}

impl Peers {
    /// Returns process `number` of `count` processes.
    ///
    /// # Panics
    /// When `number` is not below `count`.
    pub fn new(number: usize, count: usize, exchange: Box<dyn Exchange>) -> Peers {
        assert!(number < count, "process {number} of {count}");
        Peers(Arc::new(Own { number, count, exchange, left: OnceLock::new() }))
    }

    /// Returns `count` processes for tests. Each of them is a thread of the test's process.
    pub fn in_threads(count: usize) -> Vec<Peers> {
        let threads = Threads::connected(count).into_iter().enumerate();
        threads
            .map(|(number, own)| Peers::new(number, count, Box::new(ThreadExchange(Mutex::new(own)))))
            .collect()
    }

    /// The number of this process.
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// Runs this process's part of a joint computation. `body` gets the connection to the other parts.
    ///
    /// # Errors
    /// When another process is out of reach, or has another version of nicety.
    pub fn run<M, T>(&self, body: impl FnOnce(Connected<M>) -> Result<T, Error>) -> Result<Outcome<T>, Error>
    where
        T: Serialize + DeserializeOwned,
    {
        if self.0.left.get().is_some() {
            return Ok(Outcome::Interrupted);
        }
        let cut = Rc::default();
        let connected = Connected {
            peers: self.clone(),
            cut: Rc::clone(&cut),
            words: vec![0; self.count()],
            messages: PhantomData,
        };
        let result = body(connected);
        match cut.borrow_mut().take() {
            None => {}
            Some(Cut::Failed) => return Ok(Outcome::Failed),
            Some(Cut::Interrupted) => return Ok(Outcome::Interrupted),
            Some(Cut::Broken(error)) => return Err(error),
        }
        let (own, bytes) = match &result {
            Ok(result) => (ProcessState::Ended, encoded(result)),
            Err(Error::Interrupted) => (ProcessState::Interrupted, Vec::new()),
            Err(_) => (ProcessState::Failed, Vec::new()),
        };
        let heard = self.say(own, iter::repeat_n(bytes, self.count()))?;
        match cut_of(heard.iter().map(|(said, _)| *said)) {
            Some(Cut::Failed) => return Ok(Outcome::Failed),
            Some(Cut::Interrupted) => return Ok(Outcome::Interrupted),
            Some(Cut::Broken(error)) => return Err(error),
            None => {}
        }
        let mut own = result.ok();
        let of = |(number, (_, bytes)): (usize, (ProcessState, Vec<u8>))| {
            if number == self.number() {
                Ok(own.take().expect("it has ended"))
            } else {
                self.decoded(number, &bytes)
            }
        };
        heard.into_iter().enumerate().map(of).collect::<Result<_, _>>().map(Outcome::Ended)
    }

    /// Checks that all processes have the same inputs. `own` is the hash of this process's inputs.
    ///
    /// # Errors
    /// When the inputs of the processes differ. Also those of [`Peers::run`].
    pub fn agree(&self, own: u64) -> Result<(), Error> {
        match self.run::<(), u64>(|_| Ok(own))? {
            Outcome::Ended(all) => match all.iter().position(|other| *other != all[0]) {
                None => Ok(()),
                Some(number) => Err(Error::Input(format!(
                    "process {number} has another schedule or card than process 0: a file of the same name \
                     differs on its machine; copy that of process 0 to it"
                ))),
            },
            _ => Err(Error::Interrupted),
        }
    }

    /// Reports that this process leaves, because its command ends with this status. Returns the statuses of the round in which
    /// the first process left.
    ///
    /// # Errors
    /// When another process is out of reach.
    pub fn leave(&self, status: u8) -> Result<Statuses, Error> {
        if self.0.left.get().is_none() {
            self.say(ProcessState::Left(status), iter::repeat_n(Vec::new(), self.count()))?;
        }
        Ok(self.0.left.get().cloned().unwrap_or_default())
    }

    /// Exchanges states and their bytes in a round. `bytes` has an item for each process, and this process's own item is not
    /// sent.
    fn say(
        &self,
        own: ProcessState,
        bytes: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Vec<(ProcessState, Vec<u8>)>, Error> {
        let said = encoded(&own);
        let with = |(number, bytes): (usize, Vec<u8>)| {
            if number == self.number() { Vec::new() } else { [&said[..], &bytes].concat() }
        };
        let heard = self.0.exchange.exchange(bytes.enumerate().map(with).collect())?;
        let of = |(number, bytes): (usize, Vec<u8>)| {
            if number == self.number() {
                return Ok((own, Vec::new()));
            }
            let (said, rest) = postcard::take_from_bytes(&bytes).map_err(|_| self.unread(number))?;
            Ok((said, rest.to_vec()))
        };
        let heard = heard.into_iter().enumerate().map(of).collect::<Result<Vec<_>, Error>>()?;
        let left = |(said, _): &(ProcessState, Vec<u8>)| {
            if let ProcessState::Left(status) = said { Some(*status) } else { None }
        };
        let left: Statuses = heard.iter().map(left).collect();
        if left.iter().any(Option::is_some) {
            self.0.left.get_or_init(|| left);
        }
        Ok(heard)
    }

    fn decoded<T: DeserializeOwned>(&self, from: usize, bytes: &[u8]) -> Result<T, Error> {
        postcard::from_bytes(bytes).map_err(|_| self.unread(from))
    }

    fn unread(&self, from: usize) -> Error {
        let count = self.count();
        Error::Input(format!(
            "process {from} of {count} sent data that process {} cannot read; install the same version of nicety on both machines",
            self.number()
        ))
    }
}

/// Returns the reason to stop after a round with these states; `None` if all parts have ended.
fn cut_of(said: impl Iterator<Item = ProcessState> + Clone) -> Option<Cut> {
    if said.clone().any(|said| matches!(said, ProcessState::Interrupted | ProcessState::Left(_))) {
        return Some(Cut::Interrupted);
    }
    if said.clone().all(|said| said == ProcessState::Ended) { None } else { Some(Cut::Failed) }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data, of known lengths")
}

/// An exchange between threads. Each message has the number of the sending thread, and bytes.
struct ThreadExchange(Mutex<Threads<(usize, Vec<u8>)>>);

impl Exchange for ThreadExchange {
    fn exchange(&self, bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = threads.place().0;
        let mut taken = vec![Vec::new(); bytes.len()];
        let mut given: Vec<_> = bytes.into_iter().map(|bytes| vec![(number, bytes)]).collect();
        let mut incoming = Vec::new();
        if threads.meet(0, &mut given, &mut incoming).is_none() {
            return Err(Error::Program("a thread has ended".to_owned()));
        }
        incoming.into_iter().for_each(|(from, bytes)| taken[from] = bytes);
        Ok(taken)
    }
}

/// The connection of a part to the parts of other processes.
pub struct Connected<M> {
    peers: Peers,
    cut: Rc<RefCell<Option<Cut>>>,
    /// The number that each part sent in the last round.
    words: Vec<u64>,
    messages: PhantomData<M>,
}

impl<M: Serialize + DeserializeOwned> Connected<M> {
    fn round(&mut self, word: u64, outgoing: &mut [Vec<M>], incoming: &mut Vec<M>) -> Result<(), Cut> {
        let count = self.peers.count();
        let (own, mail) =
            (ProcessState::Met(word), (0..count).map(|to| outgoing.get(to).map_or(Vec::new(), encoded)));
        let heard = self.peers.say(own, mail).map_err(Cut::Broken)?;
        outgoing.iter_mut().for_each(Vec::clear);
        for (from, (said, bytes)) in heard.iter().enumerate() {
            let ProcessState::Met(word) = *said else {
                return Err(cut_of(heard.iter().map(|(said, _)| *said)).unwrap_or(Cut::Failed));
            };
            self.words[from] = word;
            if !bytes.is_empty() {
                let mut mail: Vec<M> = self.peers.decoded(from, bytes).map_err(Cut::Broken)?;
                incoming.append(&mut mail);
            }
        }
        Ok(())
    }
}

impl<M: Serialize + DeserializeOwned> Parts<M> for Connected<M> {
    fn place(&self) -> (usize, usize) {
        (self.peers.number(), self.peers.count())
    }

    fn meet(&mut self, word: u64, outgoing: &mut [Vec<M>], incoming: &mut Vec<M>) -> Option<&[u64]> {
        if self.cut.borrow().is_some() {
            return None;
        }
        match self.round(word, outgoing, incoming) {
            Ok(()) => Some(&self.words),
            Err(cut) => {
                self.cut.replace(Some(cut));
                None
            }
        }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peers({} of {})", self.number(), self.count())
    }
}

impl<M> fmt::Debug for Connected<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connected({:?})", self.peers)
    }
}
