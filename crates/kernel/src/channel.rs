//! [`Channel`]: a bounded queue of values between tasks of one node.

use crate::semaphore::{Semaphore, Take};
use crate::sim::Sim;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The value that was not sent because the channel is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel is closed")
    }
}

impl<T> Error for SendError<T> {}

/// The value that was not sent at once, with the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full, or other tasks wait to send.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "the channel is full",
            TrySendError::Closed(_) => "the channel is closed",
        })
    }
}

impl<T> Error for TrySendError<T> {}

struct Shared<T> {
    /// Number of free places, as units.
    room: Rc<Semaphore>,
    /// Number of values that are not reserved for a receiver, as units.
    filled: Rc<Semaphore>,
    values: RefCell<VecDeque<T>>,
    capacity: usize,
    closed: Cell<bool>,
}

impl<T> Shared<T> {
    /// Puts a value into a place that was taken from `room`.
    fn put(&self, value: T) {
        debug_assert!(self.values.borrow().len() < self.capacity);
        self.values.borrow_mut().push_back(value);
        self.filled.release(1);
    }

    /// Takes a value for a unit that `filled` has granted.
    fn take(&self) -> T {
        let value = self.values.borrow_mut().pop_front().expect("a value for each unit");
        self.room.release(1);
        value
    }
}

/// A bounded queue of values between tasks of one node. Senders wait while the channel is full, and receivers wait while
/// it is empty. Both are served in order of arrival. A clone is another handle to the same channel.
pub struct Channel<T>(Rc<Shared<T>>);

impl<T> Channel<T> {
    /// Returns an empty channel for `capacity` values.
    ///
    /// # Panics
    /// If the capacity is zero.
    pub fn new(sim: &Sim, capacity: usize) -> Channel<T> {
        assert!(capacity > 0, "a channel has room for one value at least");
        Channel(Rc::new(Shared {
            room: Semaphore::new(sim, capacity as u64),
            filled: Semaphore::new(sim, 0),
            values: RefCell::new(VecDeque::new()),
            capacity,
            closed: Cell::new(false),
        }))
    }

    /// Waits for room and puts a value in. A future that is dropped before it is ready has put nothing in.
    ///
    /// # Errors
    /// [`SendError`] with the value if the channel is closed before the send or while it waits.
    pub fn send(&self, value: T) -> Sending<T> {
        Sending { channel: self.clone(), take: Take::new(&self.0.room, 1), value: Some(value) }
    }

    /// Puts a value in, if there is room and no sender waits.
    ///
    /// # Errors
    /// [`TrySendError`] with the value.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if self.0.closed.get() {
            Err(TrySendError::Closed(value))
        } else if self.0.room.try_take(1) {
            self.0.put(value);
            Ok(())
        } else {
            Err(TrySendError::Full(value))
        }
    }

    /// Waits for a value and takes it. Returns `None` if the channel is closed and empty. A future that is dropped
    /// before it is ready has taken nothing.
    pub fn recv(&self) -> Receiving<T> {
        Receiving { channel: self.clone(), take: Take::new(&self.0.filled, 1) }
    }

    /// Takes a value, if there is one and no receiver waits.
    pub fn try_recv(&self) -> Option<T> {
        self.0.filled.try_take(1).then(|| self.0.take())
    }

    /// Refuses further values. The values in the channel can still be taken.
    pub fn close(&self) {
        if !self.0.closed.replace(true) {
            self.0.room.close();
            self.0.filled.close();
        }
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.0.closed.get()
    }

    /// Number of values in the channel.
    pub fn len(&self) -> usize {
        self.0.values.borrow().len()
    }

    /// Whether there is no value in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Capacity in values.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Channel<T> {
        Channel(self.0.clone())
    }
}

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({} of {})", self.len(), self.capacity())
    }
}

/// Puts a value into a channel; see [`Channel::send`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Sending<T> {
    channel: Channel<T>,
    take: Take,
    value: Option<T>,
}

/// The value is never pinned: it moves into the channel.
impl<T> Unpin for Sending<T> {}

impl<T> Future for Sending<T> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let closed = self.channel.is_closed();
        let taken = if closed { Poll::Ready(Err(crate::semaphore::Closed)) } else { self.take.poll_take() };
        taken.map(|taken| {
            let value = self.value.take().expect("a finished send was polled again");
            if taken.is_err() {
                return Err(SendError(value));
            }
            self.channel.0.put(value);
            Ok(())
        })
    }
}

/// Takes a value from a channel; see [`Channel::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Receiving<T> {
    channel: Channel<T>,
    take: Take,
}

impl<T> Future for Receiving<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        self.take.poll_take().map(|taken| taken.is_ok().then(|| self.channel.0.take()))
    }
}
