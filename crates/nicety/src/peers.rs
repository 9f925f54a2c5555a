//! The processes of a run on one or several machines, started together, for example by MPI.
//!
//! All processes run the same command and meet in rounds. In a round each sends something to every other one:
//!
//! - between two windows of virtual time, the messages to the other's part;
//! - at the end of a part, its result;
//! - at the end of the command, its status.
//!
//! A process that ends early reports it in its last round. For the others that is an interrupt, and no round follows.

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
    /// Sends each process its bytes, waits until all have done so, and returns the bytes from each. Both lists are by number; a
    /// process sends itself nothing.
    ///
    /// # Errors
    /// When the others are out of reach, or the wait was interrupted.
    fn exchange(&self, bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error>;
}

/// This process among those of a run. Clones are the same process.
#[derive(Clone)]
pub struct Peers(Arc<Own>);

struct Own {
    number: usize,
    count: usize,
    exchange: Box<dyn Exchange>,
    /// The statuses of processes that have left, once one has: no round follows.
    left: OnceLock<Statuses>,
}

/// Statuses by process; none for processes still at work.
pub type Statuses = Vec<Option<u8>>;

/// The state of a process in a round. Bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ProcessState {
    /// The part is at the end of a window; its messages follow.
    Met(u64),
    /// The part has ended; its result follows.
    Ended,
    /// The part has failed, or was interrupted.
    Failed,
    Interrupted,
    /// The command has ended, with this status.
    Left(u8),
}

/// The outcome of the parts of a run, the same for all processes.
pub enum Outcome<T> {
    /// All results, by process.
    Ended(Vec<T>),
    /// One part has failed. Its error is not included, since it has seen only a part of the run.
    Failed,
    /// One part was interrupted, or has left.
    Interrupted,
}

/// The end of a part's rounds before its result.
enum Cut {
    Failed,
    Interrupted,
    Broken(Error),
}

impl Peers {
    /// Returns process `number` of `count`.
    ///
    /// # Panics
    /// When `number` is not below `count`.
    pub fn new(number: usize, count: usize, exchange: Box<dyn Exchange>) -> Peers {
        assert!(number < count, "process {number} of {count}");
        Peers(Arc::new(Own { number, count, exchange, left: OnceLock::new() }))
    }

    /// Returns `count` threads of this process as processes, one for each thread.
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

    /// Runs this process's part of a computation of all processes. `body` gets its connection to the others.
    ///
    /// # Errors
    /// When the others are out of reach, or one of them has another version.
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

    /// Checks that all processes have the same inputs, by the hash `own`.
    ///
    /// # Errors
    /// When one has others; as [`Peers::run`].
    pub fn agree(&self, own: u64) -> Result<(), Error> {
        match self.run::<(), u64>(|_| Ok(own))? {
            Outcome::Ended(all) => match all.iter().position(|other| *other != all[0]) {
                None => Ok(()),
                Some(number) => Err(Error::Input(format!(
                    "process {number} has another schedule or card than process 0: a file of the same name differs on its \
                     machine; copy it there"
                ))),
            },
            _ => Err(Error::Interrupted),
        }
    }

    /// Ends the rounds for this process. Its command ends with this status. Returns the statuses of the processes that left
    /// first.
    ///
    /// # Errors
    /// When the others are out of reach.
    pub fn leave(&self, status: u8) -> Result<Statuses, Error> {
        if self.0.left.get().is_none() {
            self.say(ProcessState::Left(status), iter::repeat_n(Vec::new(), self.count()))?;
        }
        Ok(self.0.left.get().cloned().unwrap_or_default())
    }

    /// Exchanges states and the bytes that follow, in a round. `bytes` are for each of the others; this process gets none from
    /// itself.
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
            "process {from} of {count} says what process {} cannot read; is nicety the same on both machines?",
            self.number()
        ))
    }
}

/// Returns the early end of a round with these states; none if all have ended.
fn cut_of(said: impl Iterator<Item = ProcessState> + Clone) -> Option<Cut> {
    if said.clone().any(|said| matches!(said, ProcessState::Interrupted | ProcessState::Left(_))) {
        return Some(Cut::Interrupted);
    }
    if said.clone().all(|said| said == ProcessState::Ended) { None } else { Some(Cut::Failed) }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data, of known lengths")
}

/// Bytes for a thread, with the number of the sending one.
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

/// A part's connection to the parts in other processes.
pub struct Connected<M> {
    peers: Peers,
    cut: Rc<RefCell<Option<Cut>>>,
    /// The words of the last round.
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
