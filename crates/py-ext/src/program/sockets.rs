//! Sockets of a host.

use super::arguments::{u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use crate::errors::InputError;
use nicety::Sockets;
use nicety::commands::{self, Outcome, Setup, SocketCall, SocketSetup};
use nicety::ethernet::{Setting, SocketKind};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The address and port of a socket.
type End = (String, u16);

/// The calls of a host for sockets. The names are those of the functions for programs. Each call names a socket of the
/// host.
#[pyclass(frozen)]
pub struct SocketCalls(Arc<Handle>);

impl SocketCalls {
    fn call(
        &self,
        py: Python<'_>,
        name: &'static str,
        socket: u32,
        call: SocketCall,
        then: Option<Py<PyAny>>,
    ) -> Call {
        self.0.call(py, name, commands::Call::Sockets { socket, call }, then)
    }
}

#[pymethods]
impl SocketCalls {
    #[new]
    fn new(calls: &Calls) -> SocketCalls {
        SocketCalls(calls.0.clone())
    }

    /// Returns the address of the host with this rank.
    #[staticmethod]
    fn address(rank: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(address_of(rank)?.to_string())
    }

    fn open(&self, datagrams: bool) -> PyResult<u64> {
        let kind = if datagrams { SocketKind::Datagram } else { SocketKind::Stream };
        self.0.number(Setup::Sockets(SocketSetup::Open { kind }))
    }

    /// Returns the address and port of a socket, and those of its peer.
    fn ends(&self, socket: u32) -> PyResult<(Option<End>, Option<End>)> {
        let pair = |end: SocketAddr| (end.ip().to_string(), end.port());
        match self.0.set_up(Setup::Sockets(SocketSetup::Ends { socket }))? {
            Outcome::Ends(own, peer) => Ok((own.map(pair), peer.map(pair))),
            other => unreachable!("ends, not {other:?}"),
        }
    }

    fn bind(&self, socket: u32, port: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::Bind { port: port_of(port)? };
        Ok(self.call(port.py(), "socket.bind", socket, call, None))
    }

    fn setsockopt(&self, socket: u32, option: &str, value: &Bound<'_, PyAny>) -> PyResult<Call> {
        let setting = match option {
            "SO_SNDBUF" => Setting::SendBuffer(u64_of(value, option)?),
            "SO_RCVBUF" => Setting::ReceiveBuffer(u64_of(value, option)?),
            "TCP_NODELAY" => Setting::NoDelay(value.is_truthy()?),
            _ => {
                return Err(InputError::new_err(format!(
                    "setsockopt has SO_SNDBUF, SO_RCVBUF and TCP_NODELAY, not {option}"
                )));
            }
        };
        Ok(self.call(value.py(), "socket.setsockopt", socket, SocketCall::Set { setting }, None))
    }

    fn connect(&self, socket: u32, to: &Bound<'_, PyAny>, port: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::Connect { to: SocketAddr::new(address_of(to)?, port_of(port)?) };
        Ok(self.call(to.py(), "socket.connect", socket, call, None))
    }

    fn listen(&self, socket: u32, backlog: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::Listen { backlog: u32_of(backlog, "backlog")? };
        Ok(self.call(backlog.py(), "socket.listen", socket, call, None))
    }

    fn accept(&self, py: Python<'_>, socket: u32, accepted: Py<PyAny>) -> Call {
        self.call(py, "socket.accept", socket, SocketCall::Accept, Some(accepted))
    }

    fn send(&self, socket: u32, data: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::Send { bytes: bytes_of(data)? };
        Ok(self.call(data.py(), "socket.send", socket, call, None))
    }

    fn recv(&self, socket: u32, most: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::Recv { most: u64_of(most, "most_bytes")? };
        Ok(self.call(most.py(), "socket.recv", socket, call, None))
    }

    fn sendto(
        &self,
        socket: u32,
        data: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        port: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let to = SocketAddr::new(address_of(to)?, port_of(port)?);
        let call = SocketCall::SendTo { bytes: bytes_of(data)?, to };
        Ok(self.call(data.py(), "socket.sendto", socket, call, None))
    }

    fn recvfrom(&self, socket: u32, most: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = SocketCall::RecvFrom { most: u64_of(most, "most_bytes")? };
        Ok(self.call(most.py(), "socket.recvfrom", socket, call, None))
    }

    fn shutdown(&self, py: Python<'_>, socket: u32) -> Call {
        self.call(py, "socket.shutdown", socket, SocketCall::Shutdown, None)
    }

    fn close(&self, py: Python<'_>, socket: u32) -> Call {
        self.call(py, "socket.close", socket, SocketCall::Close, None)
    }
}

/// Reads an address. The argument is a rank, or an address as text.
fn address_of(value: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    if let Ok(text) = value.extract::<String>() {
        return text.parse().map_err(|_| {
            let example = Ipv4Addr::new(10, 0, 0, 1);
            InputError::new_err(format!(
                "'{text}' is no address; write a rank, or an address such as {example}"
            ))
        });
    }
    Ok(Sockets::address(u32_of(value, "to")?))
}

fn port_of(value: &Bound<'_, PyAny>) -> PyResult<u16> {
    let port = u64_of(value, "port")?;
    u16::try_from(port).map_err(|_| InputError::new_err(format!("port is 0 to 65535, not {port}")))
}

/// Returns the bytes of a bytes-like object.
fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let wrong = |_| {
        let what = value.get_type();
        InputError::new_err(format!("data is bytes, or what has some, such as a buffer's array, not {what}"))
    };
    PyBuffer::<u8>::get(value).map_err(wrong)?.to_vec(value.py())
}
