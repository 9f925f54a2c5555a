//! Commands for a Portals card.

use super::arguments::{ack_of, named, optional, text_of, timeout_of, u32_of, u64_of};
use super::call::Call;
use super::calls::Calls;
use super::handle::Handle;
use super::order::{self, argument};
use super::outcome::python;
use nicety::NodeId;
use nicety::commands::{self, PortalsCall, PortalsSetup, Setup, Trigger, names};
use nicety::portals::{
    AckRequest, AtomicRequest, CtEvent, CtHandle, EqHandle, FetchRequest, GetRequest, List, MdHandle, Me,
    MeHandle, Operand, PutRequest, Request, SearchOp, Source, User,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The calls of a host for a Portals card. The names are those of the functions for programs. Numbers identify counters
/// and other objects.
#[pyclass(frozen)]
pub struct PortalsCalls(Arc<Handle>);

impl PortalsCalls {
    fn call(&self, py: Python<'_>, name: &'static str, call: PortalsCall, then: Option<Py<PyAny>>) -> Call {
        self.0.call(py, name, commands::Call::Portals(call), then)
    }

    fn set_up<'py>(&self, py: Python<'py>, setup: PortalsSetup) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Portals(setup))?, None)
    }

    /// Posts an operation. If it has a trigger, a counter starts it.
    fn post(
        &self,
        py: Python<'_>,
        [at_once, later]: [&'static str; 2],
        request: Request,
        trigger: Option<Trigger>,
    ) -> Call {
        let name = if trigger.is_some() { later } else { at_once };
        self.call(py, name, PortalsCall::Post { request, trigger }, None)
    }
}

/// Returns the name of a call that changes a counter, and the call's trigger, if it has one.
fn triggered(
    [at_once, later]: [&'static str; 2],
    trigger: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
) -> PyResult<(&'static str, Option<Trigger>)> {
    let Some((ct, threshold)) = trigger else { return Ok((at_once, None)) };
    Ok((later, Some(Trigger { ct: ct_of(&ct)?, threshold: u64_of(&threshold, "threshold")? })))
}

fn ct_of(value: &Bound<'_, PyAny>) -> PyResult<CtHandle> {
    u64_of(value, "ct").map(CtHandle::from_bits)
}

fn eq_of(value: &Bound<'_, PyAny>) -> PyResult<EqHandle> {
    u64_of(value, "eq").map(EqHandle::from_bits)
}

fn some<'py, T>(
    value: &Bound<'py, PyAny>,
    read: fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if value.is_none() { Ok(None) } else { read(value).map(Some) }
}

fn md_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<MdHandle> {
    u64_of(value, name).map(MdHandle::from_bits)
}

fn rank_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<NodeId> {
    u32_of(value, name).map(NodeId)
}

/// Reads the put that the arguments of an operation describe.
macro_rules! put_of {
    ($asked:ident, $CALL:ident, $ack:expr) => {
        PutRequest {
            md: argument!($asked, $CALL.md, md_of),
            length: argument!($asked, $CALL.length, u64_of, "length_bytes"),
            target: argument!($asked, $CALL.target, rank_of, "to"),
            pt: argument!($asked, $CALL.pt, u32_of),
            match_bits: argument!($asked, $CALL.match_bits, u64_of),
            local_offset: argument!($asked, $CALL.local_offset, u64_of),
            remote_offset: argument!($asked, $CALL.remote_offset, u64_of),
            hdr_data: argument!($asked, $CALL.hdr_data, u64_of),
            user_ptr: argument!($asked, $CALL.user_ptr, u64_of),
            ack: $ack,
        }
    };
}

/// Reads an operator and a datatype by their names.
macro_rules! atomic_of {
    ($asked:ident, $CALL:ident) => {
        (argument!($asked, $CALL.operation, name_of), argument!($asked, $CALL.datatype, name_of))
    };
}

/// Reads the fetching operation that the arguments of a call describe.
macro_rules! fetch_of {
    ($asked:ident, $CALL:ident, $operand:expr) => {{
        let atomic = atomic_of!($asked, $CALL);
        FetchRequest {
            get_md: argument!($asked, $CALL.get_md, md_of),
            local_get_offset: argument!($asked, $CALL.local_get_offset, u64_of),
            put: put_of!($asked, $CALL, AckRequest::None),
            atomic: named(names::atomic(&atomic.0, &atomic.1))?,
            operand: named(
                Operand::new($operand).map_err(|error| nicety::Error::Program(error.to_string())),
            )?,
        }
    }};
}

/// Reads the trigger of an operation, if the tuple has the two arguments of a trigger.
macro_rules! trigger_of {
    ($asked:ident, $CALL:ident) => {
        match $asked.len() == order::$CALL.len() {
            true => Some(Trigger {
                ct: argument!($asked, $CALL.trigger, named_ct, "ct"),
                threshold: argument!($asked, $CALL.threshold, u64_of),
            }),
            false => None,
        }
    };
}

/// Reads the match entry that the arguments of a call describe.
macro_rules! entry_of {
    ($asked:ident, $CALL:ident) => {{
        let source = argument!($asked, $CALL.match_id, optional_rank, "source");
        let user = argument!($asked, $CALL.uid, optional_u32);
        let options = argument!($asked, $CALL.options, options_of);
        Me {
            match_bits: argument!($asked, $CALL.match_bits, u64_of),
            ignore_bits: argument!($asked, $CALL.ignore_bits, u64_of),
            source: source.map_or(Source::Any, Source::Rank),
            user: user.map_or(User::Any, User::Id),
            options: named(names::me_options(&options))?,
            ct: argument!($asked, $CALL.ct, optional_ct),
            user_ptr: argument!($asked, $CALL.user_ptr, u64_of),
            ..Me::default()
        }
    }};
}

fn name_of(value: &Bound<'_, PyAny>, _: &str) -> PyResult<String> {
    value.extract()
}

fn options_of(value: &Bound<'_, PyAny>, _: &str) -> PyResult<Vec<String>> {
    value.extract()
}

fn optional_u32(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u32>> {
    optional(value, name, u32_of)
}

fn optional_rank(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<NodeId>> {
    optional(value, name, rank_of)
}

fn named_ct(value: &Bound<'_, PyAny>, _: &str) -> PyResult<CtHandle> {
    ct_of(value)
}

fn optional_ct(value: &Bound<'_, PyAny>, _: &str) -> PyResult<Option<CtHandle>> {
    some(value, ct_of)
}

fn list_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<List> {
    named(names::list(&text_of(value, name, "overflow")?))
}

fn is_true(value: &Bound<'_, PyAny>, _: &str) -> PyResult<bool> {
    value.is_truthy()
}

fn count_of(success: &Bound<'_, PyAny>, failure: &Bound<'_, PyAny>) -> PyResult<CtEvent> {
    Ok(CtEvent { success: u64_of(success, "success")?, failure: u64_of(failure, "failure")? })
}

#[pymethods]
impl PortalsCalls {
    #[new]
    fn new(calls: &Calls) -> PortalsCalls {
        PortalsCalls(calls.0.clone())
    }

    fn ni_limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(py, PortalsSetup::NiLimits)
    }

    fn ni_status<'py>(&self, register: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let name = text_of(register, "register", "drop_count")?;
        let register_of = named(names::status_register(&name))?;
        self.set_up(register.py(), PortalsSetup::NiStatus { register: register_of })
    }

    fn ct_alloc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(py, PortalsSetup::CtAlloc)
    }

    fn ct_free<'py>(&self, ct: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(ct.py(), PortalsSetup::CtFree { ct: ct_of(ct)? })
    }

    /// Returns the numbers of successes and failures that a counter has.
    fn ct_get<'py>(&self, ct: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(ct.py(), PortalsSetup::CtGet { ct: ct_of(ct)? })
    }

    fn eq_alloc<'py>(&self, depth: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(depth.py(), PortalsSetup::EqAlloc { depth: u32_of(depth, "depth")? })
    }

    fn eq_free<'py>(&self, eq: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(eq.py(), PortalsSetup::EqFree { eq: eq_of(eq)? })
    }

    fn pt_alloc<'py>(
        &self,
        pt: &Bound<'py, PyAny>,
        eq: &Bound<'py, PyAny>,
        options: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, pt) = (pt.py(), optional(pt, "pt", u32_of)?);
        let (eq, options) = (some(eq, eq_of)?, named(names::pt_options(&options))?);
        self.set_up(py, PortalsSetup::PtAlloc { pt, eq, options })
    }

    fn pt_free<'py>(&self, pt: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(pt.py(), PortalsSetup::PtFree { pt: u32_of(pt, "pt")? })
    }

    fn md_bind<'py>(
        &self,
        buffer: &Bound<'py, PyAny>,
        options: Vec<String>,
        eq: &Bound<'py, PyAny>,
        ct: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (part, options) = (self.0.part(buffer)?, named(names::md_options(&options))?);
        let (eq, ct) = (some(eq, eq_of)?, some(ct, ct_of)?);
        self.set_up(buffer.py(), PortalsSetup::MdBind { part, options, eq, ct })
    }

    fn md_release<'py>(&self, md: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.set_up(md.py(), PortalsSetup::MdRelease { md: MdHandle::from_bits(u64_of(md, "md")?) })
    }

    fn put(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let ack = |value: &Bound<'_, PyAny>, _: &str| ack_of(value);
        let request = Request::Put(put_of!(asked, PUT, argument!(asked, PUT.ack, ack)));
        let names = ["host.portals.put", "host.portals.triggered_put"];
        Ok(self.post(asked.py(), names, request, trigger_of!(asked, PUT)))
    }

    fn get(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let request = Request::Get(GetRequest {
            md: argument!(asked, GET.md, md_of),
            length: argument!(asked, GET.length, u64_of, "length_bytes"),
            target: argument!(asked, GET.target, rank_of, "to"),
            pt: argument!(asked, GET.pt, u32_of),
            match_bits: argument!(asked, GET.match_bits, u64_of),
            local_offset: argument!(asked, GET.local_offset, u64_of),
            remote_offset: argument!(asked, GET.remote_offset, u64_of),
            user_ptr: argument!(asked, GET.user_ptr, u64_of),
        });
        let names = ["host.portals.get", "host.portals.triggered_get"];
        Ok(self.post(asked.py(), names, request, trigger_of!(asked, GET)))
    }

    fn atomic(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let ack = |value: &Bound<'_, PyAny>, _: &str| ack_of(value);
        let (operator, datatype) = atomic_of!(asked, ATOMIC);
        let atomic = named(names::atomic(&operator, &datatype))?;
        let put = put_of!(asked, ATOMIC, argument!(asked, ATOMIC.ack, ack));
        let request = Request::Atomic(AtomicRequest { put, atomic });
        let names = ["host.portals.atomic", "host.portals.triggered_atomic"];
        Ok(self.post(asked.py(), names, request, trigger_of!(asked, ATOMIC)))
    }

    fn fetch_atomic(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let request = Request::FetchAtomic(fetch_of!(asked, FETCH_ATOMIC, &[]));
        let names = ["host.portals.fetch_atomic", "host.portals.triggered_fetch_atomic"];
        Ok(self.post(asked.py(), names, request, trigger_of!(asked, FETCH_ATOMIC)))
    }

    fn swap(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let bytes = |value: &Bound<'_, PyAny>, _: &str| value.extract::<Vec<u8>>();
        let request = Request::Swap(fetch_of!(asked, SWAP, &argument!(asked, SWAP.operand_low, bytes)));
        let names = ["host.portals.swap", "host.portals.triggered_swap"];
        Ok(self.post(asked.py(), names, request, trigger_of!(asked, SWAP)))
    }

    fn ct_inc(
        &self,
        ct: &Bound<'_, PyAny>,
        success: &Bound<'_, PyAny>,
        failure: &Bound<'_, PyAny>,
        trigger: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Call> {
        let (name, trigger) = triggered(["host.portals.ct_inc", "host.portals.triggered_ct_inc"], trigger)?;
        let call = PortalsCall::CtInc { ct: ct_of(ct)?, by: count_of(success, failure)?, trigger };
        Ok(self.call(ct.py(), name, call, None))
    }

    fn ct_set(
        &self,
        ct: &Bound<'_, PyAny>,
        success: &Bound<'_, PyAny>,
        failure: &Bound<'_, PyAny>,
        trigger: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Call> {
        let (name, trigger) = triggered(["host.portals.ct_set", "host.portals.triggered_ct_set"], trigger)?;
        let call = PortalsCall::CtSet { ct: ct_of(ct)?, value: count_of(success, failure)?, trigger };
        Ok(self.call(ct.py(), name, call, None))
    }

    fn ct_cancel_triggered(&self, ct: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::CtCancelTriggered { ct: ct_of(ct)? };
        Ok(self.call(ct.py(), "host.portals.ct_cancel_triggered", call, None))
    }

    fn ct_wait(&self, ct: &Bound<'_, PyAny>, threshold: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::CtWait { ct: ct_of(ct)?, threshold: u64_of(threshold, "threshold")? };
        Ok(self.call(ct.py(), "host.portals.ct_wait", call, None))
    }

    /// Polls counters. Each item is the number of a counter and its threshold.
    fn ct_poll(
        &self,
        counters: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        timeout_ns: &Bound<'_, PyAny>,
        count: Py<PyAny>,
    ) -> PyResult<Call> {
        let each = |(ct, least): &(Bound<'_, PyAny>, _)| Ok((ct_of(ct)?, u64_of(least, "threshold")?));
        let counters = counters.iter().map(each).collect::<PyResult<_>>()?;
        let limit = timeout_of(timeout_ns, "timeout_ns=", "")?;
        let call = PortalsCall::CtPoll { counters, limit };
        Ok(self.call(timeout_ns.py(), "host.portals.ct_poll", call, Some(count)))
    }

    fn eq_get(&self, eq: &Bound<'_, PyAny>, event: Py<PyAny>) -> PyResult<Call> {
        Ok(self.call(eq.py(), "host.portals.eq_get", PortalsCall::EqGet { eq: eq_of(eq)? }, Some(event)))
    }

    fn eq_wait(&self, eq: &Bound<'_, PyAny>, event: Py<PyAny>) -> PyResult<Call> {
        Ok(self.call(eq.py(), "host.portals.eq_wait", PortalsCall::EqWait { eq: eq_of(eq)? }, Some(event)))
    }

    fn eq_poll(&self, eqs: Vec<u64>, timeout_ns: &Bound<'_, PyAny>, event: Py<PyAny>) -> PyResult<Call> {
        let eqs = eqs.into_iter().map(EqHandle::from_bits).collect();
        let limit = timeout_of(timeout_ns, "timeout_ns=", "")?;
        Ok(self.call(
            timeout_ns.py(),
            "host.portals.eq_poll",
            PortalsCall::EqPoll { eqs, limit },
            Some(event),
        ))
    }

    fn pt_enable(&self, pt: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::PtEnable { pt: u32_of(pt, "pt")?, enabled: true };
        Ok(self.call(pt.py(), "host.portals.pt_enable", call, None))
    }

    fn pt_disable(&self, pt: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::PtEnable { pt: u32_of(pt, "pt")?, enabled: false };
        Ok(self.call(pt.py(), "host.portals.pt_disable", call, None))
    }

    /// Appends a match entry. If `wait` is true, waits until the card has appended the entry, and returns the entry's
    /// handle.
    fn me_append(&self, asked: &Bound<'_, PyTuple>, wait: &Bound<'_, PyAny>) -> PyResult<Call> {
        let list = argument!(asked, ME_APPEND.list, list_of);
        let me = Me {
            min_free: argument!(asked, ME_APPEND.min_free, u64_of),
            handlers: argument!(asked, ME_APPEND.handlers, optional_u32),
            ..entry_of!(asked, ME_APPEND)
        };
        let part = |value: &Bound<'_, PyAny>, _: &str| self.0.part(value);
        let part = argument!(asked, ME_APPEND.start, part);
        let (pt, wait) = (argument!(asked, ME_APPEND.pt, u32_of), wait.is_truthy()?);
        let call = PortalsCall::MeAppend { part, pt, me, list, wait };
        Ok(self.call(asked.py(), "host.portals.me_append", call, None))
    }

    fn me_unlink(&self, me: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::MeUnlink { me: MeHandle::from_bits(u64_of(me, "me")?) };
        Ok(self.call(me.py(), "host.portals.me_unlink", call, None))
    }

    fn me_search(&self, asked: &Bound<'_, PyTuple>) -> PyResult<Call> {
        let op = if argument!(asked, ME_SEARCH.op, is_true) { SearchOp::Delete } else { SearchOp::Only };
        let pt = argument!(asked, ME_SEARCH.pt, u32_of);
        let call = PortalsCall::MeSearch { pt, me: entry_of!(asked, ME_SEARCH), op };
        Ok(self.call(asked.py(), "host.portals.me_search", call, None))
    }

    fn atomic_sync(&self, py: Python<'_>) -> Call {
        self.call(py, "host.portals.atomic_sync", PortalsCall::AtomicSync, None)
    }
}
