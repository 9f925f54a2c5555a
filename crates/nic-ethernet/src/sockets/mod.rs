//! Sockets: the calls of programs, and their costs.
//!
//! | file | contents |
//! |---|---|
//! | `stream.rs` | connections |
//! | `listening.rs` | listening sockets |
//! | `datagram.rs` | datagrams |
//! | `files.rs` | the calls of programs, on sockets by number |

mod datagram;
mod files;
mod listening;
mod stream;

pub use files::{Setting, SocketError, SocketKind, Sockets};
pub(super) use listening::Listening;
pub(super) use stream::Socket;

use super::net::{Net, Waited};
use super::stages;
use nicety_host::threads::{Group, Page, Piece, Thread};
use nicety_types::{Path, Stage};
use std::rc::Rc;

impl Waited {
    /// Joins a thread's path to that of the stack's work for the socket's last frame.
    fn join(&self, path: &mut Path) {
        if let Some(arrived) = self.path.borrow().as_ref().filter(|arrived| arrived.at() > path.at()) {
            path.clone_from(arrived);
        }
    }
}

impl Net {
    /// Charges a system call without work. Before the call, its thread was outside the kernel.
    pub(crate) async fn system_call(&self, thread: &Thread, path: &mut Path) {
        self.system_calls.set(self.system_calls.get() + 1);
        thread.leave_kernel().await;
        thread.run(Piece::new(Group::Kernel, self.spec.sockets.call), Stage::SYSTEM_CALL, path).await;
    }

    /// Charges the socket's part of a call without a connection.
    pub(crate) async fn socket_work(&self, thread: &Thread, path: &mut Path) {
        thread.run(Piece::new(Group::Socket, self.spec.sockets.socket), stages::SOCKET, path).await;
    }

    /// Charges a copy of bytes between kernel and user. The kernel's bytes are in `pages`, or in other pages that are
    /// always in the TLB.
    pub(crate) async fn copy(&self, thread: &Thread, bytes: usize, pages: &[Rc<Page>], path: &mut Path) {
        let lines = self.lines(bytes);
        let pages: Vec<&Page> = pages.iter().map(Rc::as_ref).collect();
        let copy = Piece::new(Group::Copy, lines * self.spec.sockets.copy).streaming(lines).within(&pages);
        thread.run(copy, stages::COPY, path).await;
    }
}
