//! Threads of one host's program.

use super::Host;
use crate::Error;
use nicety_kernel::{Signal, describe};
use nicety_types::Path;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// Failed programs, and failed threads that no thread joins. Each item has the rank, the error, and the name if it is
/// not that of the rank.
pub(crate) type Failed = Rc<RefCell<Vec<(u32, Option<String>, Error)>>>;

/// A thread that [`Host::spawn`] started. If this handle is dropped, the thread continues, and its failure fails the run.
#[must_use = "a thread's result, and its error, are what Thread::join gives"]
pub struct Thread<T> {
    host: Host,
    number: u32,
    end: Rc<End<T>>,
}

struct End<T> {
    /// The thread's result, and the critical path to the thread's end.
    result: RefCell<Option<(Result<T, Error>, Path)>>,
    ended: Signal,
}

impl Host {
    /// Starts another thread of this host's program, at this instant. It shares the host's memory and card, and has its own path.
    pub fn spawn<T, F>(&self, thread: impl FnOnce(Host) -> F) -> Thread<T>
    where
        T: 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let host = self.another_thread();
        let number = host.thread;
        let end = Rc::new(End { result: RefCell::default(), ended: Signal::new(&self.inner.sim) });
        let running = thread(host.clone());
        let kept = end.clone();
        host.begins();
        self.inner.sim.spawn_program(format!("rank {}, thread {number}", self.rank()), async move {
            let result = running.await;
            match result {
                Err(error) if Rc::strong_count(&kept) == 1 => host.thread_failed(error),
                result => {
                    kept.result.replace(Some((result, host.path())));
                    kept.ended.notify_all();
                }
            }
            host.ended().await;
        });
        Thread { host: self.clone(), number, end }
    }

    /// Returns the host for a new thread of this program.
    pub(crate) fn another_thread(&self) -> Host {
        let number = self.inner.threads.get() + 1;
        self.inner.threads.set(number);
        let path = Rc::new(RefCell::new(self.path_from_now()));
        Host { inner: self.inner.clone(), thread: number, path }
    }

    /// Counts the start of a program of this host, or of a thread of a program.
    pub(crate) fn begins(&self) {
        let running = &self.inner.running;
        running.set(running.get() + 1);
    }

    /// Counts the end of a program or thread. When the last one has ended, the card closes its open sockets and similar
    /// resources.
    pub(crate) async fn ended(&self) {
        drop(self.inner.xsk_readers.borrow_mut().remove(&self.thread));
        let running = &self.inner.running;
        running.set(running.get() - 1);
        if running.get() == 0 {
            self.inner.card.clone().program_ended(self.caller()).await;
            self.over();
        }
    }

    /// Whether a program or thread of this host is running, or will start.
    pub(crate) fn is_running(&self) -> bool {
        self.inner.running.get() > 0
    }

    /// Signals that all programs of this host have ended, if a tester waits for this.
    pub(crate) fn over(&self) {
        if let Some(over) = self.inner.over.take() {
            self.inner.sim.spawn(async move { over.wait().await });
        }
    }

    fn thread_failed(&self, error: Error) {
        self.inner.failed.borrow_mut().push((self.rank(), None, error));
    }
}

impl<T> Thread<T> {
    /// Waits until the thread has ended, and returns its result. If the caller had to wait, its path continues the thread's path.
    ///
    /// # Errors
    /// The error of the thread's program.
    pub async fn join(self) -> Result<T, Error> {
        let (number, start) = (self.number, self.host.now());
        let ended = || self.end.result.borrow().is_some();
        describe(move || format!("the end of its thread {number}"), self.end.ended.wait_until(ended)).await;
        let (result, path) = self.end.result.take().expect("just seen");
        self.host.path.borrow_mut().follow(&path);
        self.host.called("wait for a thread", start);
        result
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        if let Some((Err(error), _)) = self.end.result.take() {
            self.host.thread_failed(error);
        }
    }
}
