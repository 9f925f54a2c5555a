//! [`Server`] and [`Pool`]: one server, or several equal servers. Each serves one task at a time, first come, first
//! served. [`Credits`]: a counter from which a task takes any amount.

use crate::semaphore::{Semaphore, Serve, Take};
use crate::sim::Sim;
use nicety_types::Duration;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Held units. A dropped permit releases them to the next waiters.
#[must_use = "a permit that is dropped gives its units back at once"]
pub struct Permit {
    semaphore: Rc<Semaphore>,
    amount: u64,
}

impl Permit {
    /// Number of units held.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Prevents the automatic release of the units: another task will [release](Credits::release) them, for example
    /// when a credit returns over a wire.
    pub fn forget(mut self) {
        self.amount = 0;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.semaphore.release(self.amount);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.amount)
    }
}

/// The permit of a [`Server`].
pub type Guard = Permit;

/// Waits for units; see [`Credits::acquire`]. A dropped future leaves the line.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire(Take);

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Permit> {
        let Take { amount, .. } = self.0;
        let taken = self.0.poll_take();
        taken.map(|result| match result {
            Ok(()) => Permit { semaphore: self.0.semaphore.clone(), amount },
            Err(_) => unreachable!("credits, pools and servers are never closed"),
        })
    }
}

/// Several equal servers with one common line. Clones are the same pool.
#[derive(Clone)]
pub struct Pool {
    semaphore: Rc<Semaphore>,
    servers: u64,
}

impl Pool {
    /// Returns a pool of `servers`, all free.
    ///
    /// # Panics
    /// If `servers` is zero: every caller would wait for ever.
    pub fn new(sim: &Sim, servers: usize) -> Pool {
        assert!(servers > 0, "a pool has one server at least");
        Pool { semaphore: Semaphore::new(sim, servers as u64), servers: servers as u64 }
    }

    /// Waits for a server and holds it until the permit is dropped.
    pub fn acquire(&self) -> Acquire {
        Acquire(Take::new(&self.semaphore, 1))
    }

    /// Takes a server, if one is free and no task waits.
    pub fn try_acquire(&self) -> Option<Permit> {
        self.semaphore.try_take(1).then(|| Permit { semaphore: self.semaphore.clone(), amount: 1 })
    }

    /// Waits for a server and is served for `duration`. Is ready at the end of the service, and returns the instant at
    /// which the service began.
    pub fn serve(&self, duration: Duration) -> Serve {
        Serve::new(&self.semaphore, duration)
    }

    /// Number of free servers.
    pub fn available(&self) -> usize {
        self.semaphore.available() as usize
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.servers as usize
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.semaphore.waiting()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?} of {})", self.semaphore, self.servers)
    }
}

/// A single server with a line, such as a bus, a matching unit or a port. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Server(Pool);

impl Server {
    /// Returns a free server.
    pub fn new(sim: &Sim) -> Server {
        Server(Pool::new(sim, 1))
    }

    /// Waits for the server and is served for `duration`. Is ready at the end of the service, and returns the instant
    /// at which the service began.
    pub fn serve(&self, duration: Duration) -> Serve {
        self.0.serve(duration)
    }

    /// Waits for the server and holds it until the guard is dropped.
    pub fn acquire(&self) -> Acquire {
        self.0.acquire()
    }

    /// Takes the server, if it is free and no task waits.
    pub fn try_acquire(&self) -> Option<Guard> {
        self.0.try_acquire()
    }

    /// Whether the server is free.
    pub fn is_free(&self) -> bool {
        self.0.available() > 0
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

/// A counter of equal items that tasks take in any amount, such as bytes of a buffer or credits for a receiver's slots.
/// Requests are served first come, first served: a small request does not overtake a large request. A clone is another
/// handle to the same counter.
#[derive(Clone)]
pub struct Credits(Rc<Semaphore>);

impl Credits {
    /// Returns a counter with `available` credits.
    pub fn new(sim: &Sim, available: u64) -> Credits {
        Credits(Semaphore::new(sim, available))
    }

    /// Waits for `amount` credits and holds them until the permit is dropped.
    pub fn acquire(&self, amount: u64) -> Acquire {
        Acquire(Take::new(&self.0, amount))
    }

    /// Takes `amount` credits, if they are available and no task waits.
    pub fn try_acquire(&self, amount: u64) -> Option<Permit> {
        self.0.try_take(amount).then(|| Permit { semaphore: self.0.clone(), amount })
    }

    /// Adds credits, or releases the credits of a [forgotten](Permit::forget) permit.
    pub fn release(&self, amount: u64) {
        self.0.release(amount);
    }

    /// Number of available credits.
    pub fn available(&self) -> u64 {
        self.0.available()
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

impl fmt::Debug for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credits({:?})", self.0)
    }
}
