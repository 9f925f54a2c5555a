//! Sockets: the calls of programs, and what they cost.
//!
//! | file | what is in it |
//! |---|---|
//! | `stream.rs` | connections |
//! | `listening.rs` | what waits for connections |
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
use nicety_host::threads::{Group, Piece, Thread};
use nicety_types::{Path, Stage};

impl Waited {
    /// What a thread does next follows what the stack did with the last frame for the socket.
    fn join(&self, path: &mut Path) {
        if let Some(arrived) = self.path.borrow().as_ref().filter(|arrived| arrived.at() > path.at()) {
            path.clone_from(arrived);
        }
    }
}

impl Net {
    /// A system call that does nothing.
    pub(in crate::ethernet) async fn system_call(&self, thread: &Thread, path: &mut Path) {
        self.system_calls.set(self.system_calls.get() + 1);
        thread.run(Piece::new(Group::Kernel, self.spec.sockets.call), Stage::SYSTEM_CALL, path).await;
    }

    /// The socket's part of a call, where there is no connection.
    pub(in crate::ethernet) async fn socket_work(&self, thread: &Thread, path: &mut Path) {
        thread.run(Piece::new(Group::Socket, self.spec.sockets.socket), stages::SOCKET, path).await;
    }

    /// Bytes are copied between kernel and user.
    pub(in crate::ethernet) async fn copy(&self, thread: &Thread, bytes: usize, path: &mut Path) {
        let lines = self.lines(bytes);
        let copy = Piece::new(Group::Copy, lines * self.spec.sockets.copy).streaming(lines);
        thread.run(copy, stages::COPY, path).await;
    }
}
