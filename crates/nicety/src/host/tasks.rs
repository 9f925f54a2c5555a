//! Many small concurrent parts of a host's program, such as the operations of a schedule.

use super::{Host, PendingRecv};
use crate::Error;
use nicety_kernel::{Signal, describe};
use nicety_types::{Level, Path};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// The tasks of a program. They are lighter than [threads](Host::spawn), since nothing waits for a single task. A clone is the
/// same tasks.
#[derive(Clone)]
pub struct Tasks(Rc<Shared>);

/// A task that has ended and continues as another one: [`Tasks::start_when_received`].
#[must_use = "the task that goes on later is over for now, and says so by its result"]
pub struct Later(());

struct Shared {
    running: Cell<u64>,
    failed: RefCell<Option<Error>>,
    /// The path to the end of the last task.
    path: RefCell<Path>,
    ended: Signal,
}

impl Tasks {
    /// Returns an empty set of tasks, of this host's program.
    pub fn new(host: &Host) -> Tasks {
        Tasks(Rc::new(Shared {
            running: Cell::new(0),
            failed: RefCell::default(),
            path: RefCell::new(host.path_from_now()),
            ended: Signal::new(&host.inner.sim),
        }))
    }

    /// Starts a task at this instant, as thread number `thread` of its program, with a path that continues `path`. It shares the
    /// host's memory and card. The first failure ends the wait for all tasks.
    pub fn start<F>(&self, host: &Host, thread: u32, path: Path, task: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<Option<Later>, Error>> + 'static,
    {
        let host = Host { inner: host.inner.clone(), thread, path: Rc::new(RefCell::new(path)) };
        let Shared { running, .. } = &*self.0;
        running.set(running.get() + 1);
        self.spawn(host, task);
    }

    /// Starts another task when the message of a posted receive, or another event for it, arrives. The current task ends with the
    /// result, so it need not wait in [`Host::received`], and the pending receive takes little memory.
    ///
    /// # Errors
    /// The receive itself, if such an event has happened, or the card cannot notify. Then the task must wait itself.
    pub fn start_when_received<F>(
        &self,
        host: &Host,
        pending: PendingRecv,
        task: impl FnOnce(Host, PendingRecv) -> F + 'static,
    ) -> Result<Later, PendingRecv>
    where
        F: Future<Output = Result<Option<Later>, Error>> + 'static,
    {
        // A timeline shows the wait.
        if host.inner.recorder.keeps(Level::Everything) {
            return Err(pending);
        }
        let (tasks, own) = (self.clone(), host.clone());
        let then = move |posted| tasks.spawn(own, move |host| task(host, PendingRecv(posted)));
        host.inner.card.when_received(pending.0, Box::new(then)).map_err(PendingRecv)?;
        Ok(Later(()))
    }

    fn spawn<F>(&self, host: Host, task: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<Option<Later>, Error>> + 'static,
    {
        let (sim, shared, path) = (host.inner.sim.clone(), self.0.clone(), host.path.clone());
        let task = task(host);
        sim.spawn_with(|| async move {
            let result = task.await;
            if let Ok(Some(Later(()))) = result {
                return;
            }
            shared.running.set(shared.running.get() - 1);
            shared.path.borrow_mut().follow(&path.borrow());
            if let Err(error) = result {
                shared.failed.borrow_mut().get_or_insert(error);
            }
            if shared.running.get() == 0 || shared.failed.borrow().is_some() {
                shared.ended.notify_all();
            }
        });
    }

    /// Waits for the end of all tasks, including new ones. The caller's path continues that of the last.
    ///
    /// # Errors
    /// The error of the first failed task.
    pub async fn ended(&self, host: &Host) -> Result<(), Error> {
        let Shared { running, failed, path, ended } = &*self.0;
        let over = || running.get() == 0 || failed.borrow().is_some();
        let waiting = || match running.get() {
            1 => "the end of one of its tasks".to_owned(),
            tasks => format!("the end of {tasks} of its tasks"),
        };
        describe(waiting, ended.wait_until(over)).await;
        host.path.borrow_mut().follow(&path.borrow());
        failed.borrow_mut().take().map_or(Ok(()), Err)
    }
}
