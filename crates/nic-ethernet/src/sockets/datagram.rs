//! Datagram sockets.

use crate::net::{Net, Waited};
use crate::wire;
use nicety_host::threads::Thread;
use nicety_kernel::describe;
use nicety_stack::{DatagramId, Error};
use nicety_types::{Path, Stage};
use std::net::SocketAddr;
use std::rc::Rc;

/// A datagram socket with a port.
#[derive(Clone)]
pub(super) struct Datagram {
    net: Rc<Net>,
    id: DatagramId,
    state: Rc<Waited>,
}

impl Datagram {
    /// Binds a socket to this port, or to a free one.
    pub(super) fn bind(net: &Rc<Net>, port: Option<u16>) -> Result<Datagram, Error> {
        let id = net.stack.borrow_mut().bind(port)?;
        let state = Rc::<Waited>::default();
        net.datagrams.borrow_mut().insert(id, state.clone());
        Ok(Datagram { net: net.clone(), id, state })
    }

    /// Returns the socket's port.
    pub(super) fn port(&self) -> Result<u16, Error> {
        self.net.stack.borrow().port(self.id)
    }

    /// Sends a datagram. Returns when the kernel has it.
    pub(super) async fn send_to(
        &self,
        thread: &Thread,
        bytes: &[u8],
        to: SocketAddr,
        path: &mut Path,
    ) -> Result<(), Error> {
        let _waiting = self.state.writers.enter(thread);
        self.net.system_call(thread, path).await;
        self.net.socket_work(thread, path).await;
        self.net.copy(thread, bytes.len(), &[], path).await;
        if let Some(rank) = wire::rank(to.ip()) {
            self.net.know(rank);
        }
        loop {
            let sent = self.net.stack.borrow_mut().send_to(self.id, bytes, to);
            match sent {
                Err(Error::WouldBlock) => {}
                sent => {
                    sent?;
                    self.net.follow(thread, path).await;
                    return Ok(());
                }
            }
            describe(|| format!("room for a datagram to {to}"), thread.sleep()).await;
        }
    }

    /// Waits for a datagram. Returns the first `most` bytes of the datagram, and its sender.
    pub(super) async fn recv_from(
        &self,
        thread: &Thread,
        most: usize,
        path: &mut Path,
    ) -> Result<(Vec<u8>, SocketAddr), Error> {
        let _waiting = self.state.readers.enter(thread);
        self.net.system_call(thread, path).await;
        self.net.socket_work(thread, path).await;
        let mut bytes = vec![0; most.min(MOST)];
        loop {
            let come = self.net.stack.borrow_mut().recv_from(self.id, &mut bytes);
            match come {
                Err(Error::WouldBlock) => {}
                come => {
                    let (taken, from) = come?;
                    bytes.truncate(taken);
                    self.state.join(path);
                    path.advance(Stage::WAKE, self.net.sim.now());
                    self.net.copy(thread, taken, &[], path).await;
                    return Ok((bytes, from));
                }
            }
            let waits = || self.port().map_or_else(|_| String::new(), |port| format!(" to its port {port}"));
            describe(|| format!("a datagram{}", waits()), thread.sleep()).await;
        }
    }

    /// Closes the socket. Unread datagrams are lost.
    pub(super) async fn close(&self, thread: &Thread, path: &mut Path) -> Result<(), Error> {
        self.net.system_call(thread, path).await;
        self.net.stack.borrow_mut().close_datagrams(self.id)?;
        self.net.datagrams.borrow_mut().remove(&self.id);
        let woken = [self.state.readers.all(), self.state.writers.all()].concat();
        self.net.wake(thread, woken, path).await;
        Ok(())
    }
}

/// Length of the longest datagram in bytes (RFC 768).
const MOST: usize = 65_535;
