//! Many small concurrent tasks of a host's program, such as the operations of a schedule.

use super::{Host, PendingRecv};
use crate::Error;
use nicety_kernel::{Signal, describe};
use nicety_types::{Level, Path};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// A set of tasks of one program. A task needs less memory than a [thread](Host::spawn), because nothing waits for a
/// single task. A clone is the same set.
#[derive(Clone)]
pub struct Tasks(Rc<Shared>);

/// The result of a task that ends now and continues as another task; see [`Tasks::start_when_received`].
#[must_use = "return this value as the result of the current task, which ends now and continues as another task"]
pub struct Later(());

struct Shared {
    running: Cell<u64>,
    failed: RefCell<Option<Error>>,
    /// The critical path to the end of the last task so far.
    path: RefCell<Path>,
    ended: Signal,
}

impl Tasks {
    /// Returns an empty set of tasks for this host's program.
    pub fn new(host: &Host) -> Tasks {
        Tasks(Rc::new(Shared {
            running: Cell::new(0),
            failed: RefCell::default(),
            path: RefCell::new(host.path_from_now()),
            ended: Signal::new(&host.inner.sim),
        }))
    }

    /// Starts a task now, as thread number `thread` of its program. The task's path continues `path`. The task shares the host's
    /// memory and card. The first failure of a task ends the wait for all tasks.
    pub fn start<F>(&self, host: &Host, thread: u32, path: Path, task: impl FnOnce(Host) -> F)
    where
        F: Future<Output = Result<Option<Later>, Error>> + 'static,
    {
        let host = Host { inner: host.inner.clone(), thread, path: Rc::new(RefCell::new(path)) };
        let Shared { running, .. } = &*self.0;
        running.set(running.get() + 1);
        self.spawn(host, task);
    }

    /// Starts another task when the message of a posted receive arrives, or another event of this receive occurs. The
    /// current task ends with the returned value as its result. So no task waits in [`Host::received`], and the pending
    /// receive takes little memory.
    ///
    /// # Errors
    /// Returns the receive if such an event has already occurred, or the card cannot report it. The current task must
    /// then wait itself.
    pub fn start_when_received<F>(
        &self,
        host: &Host,
        pending: PendingRecv,
        task: impl FnOnce(Host, PendingRecv) -> F + 'static,
    ) -> Result<Later, PendingRecv>
    where
        F: Future<Output = Result<Option<Later>, Error>> + 'static,
    {
        // A timeline shows waits of tasks, so the task itself must wait.
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

    /// Waits until all tasks have ended, including tasks that start meanwhile. The caller's path continues the path of the last
    /// task.
    ///
    /// # Errors
    /// The error of the task that failed first.
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
