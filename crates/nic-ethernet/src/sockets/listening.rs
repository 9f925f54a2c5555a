//! Listening sockets.

use super::stream::Socket;
use crate::net::{Net, Waited};
use nicety_host::threads::Thread;
use nicety_kernel::describe;
use nicety_stack::{Error, ListenerId, Options};
use nicety_types::{Path, Stage};
use std::rc::Rc;

/// A listening socket.
#[derive(Clone)]
pub(crate) struct Listening {
    net: Rc<Net>,
    id: ListenerId,
    port: u16,
    state: Rc<Waited>,
}

impl Listening {
    /// Listens at a port, with up to `backlog` pending connections.
    pub(crate) fn open(
        net: &Rc<Net>,
        port: u16,
        backlog: usize,
        options: &Options,
    ) -> Result<Listening, Error> {
        let id = net.stack.borrow_mut().listen(port, backlog, options)?;
        let state = Rc::<Waited>::default();
        net.listeners.borrow_mut().insert(id, state.clone());
        Ok(Listening { net: net.clone(), id, port, state })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Makes [`Net::watcher`] wake when a connection arrives.
    pub(crate) fn watch(&self) {
        self.state.watched.set(true);
    }

    /// Takes a pending connection, if there is one.
    pub(crate) fn accept_now(&self) -> Option<Socket> {
        let id = self.net.stack.borrow_mut().accept(self.id).ok()?;
        Socket::new(&self.net, id).ok()
    }

    /// Waits for a connection.
    pub(crate) async fn accept(&self, thread: &Thread, path: &mut Path) -> Result<Socket, Error> {
        let _waiting = self.state.readers.enter(thread);
        self.net.system_call(thread, path).await;
        self.net.socket_work(thread, path).await;
        loop {
            let accepted = self.net.stack.borrow_mut().accept(self.id);
            match accepted {
                Err(Error::WouldBlock) => {}
                accepted => return Socket::new(&self.net, accepted?),
            }
            describe(|| format!("a connection to its port {}", self.port), thread.sleep()).await;
            self.state.join(path);
            path.advance(Stage::WAKE, self.net.sim.now());
        }
    }

    /// Stops listening. Pending connections are reset.
    pub(crate) async fn close(&self, thread: &Thread, path: &mut Path) -> Result<(), Error> {
        self.net.system_call(thread, path).await;
        self.net.with(|stack, now| stack.close_listener(now, self.id))?;
        self.net.listeners.borrow_mut().remove(&self.id);
        self.net.wake(thread, self.state.readers.all(), path).await;
        self.net.follow(thread, path).await;
        Ok(())
    }
}
