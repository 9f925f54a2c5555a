//! Commands to a Portals card.

use super::arguments::{ack_of, named, optional, text_of, timeout_of, u32_of, u64_of};
use super::call::Call;
use super::handle::{Calls, Handle};
use super::outcome::python;
use nicety::NodeId;
use nicety::commands::{self, PortalsCall, PortalsSetup, Setup, Trigger, names};
use nicety::portals::{
    AtomicRequest, CtEvent, CtHandle, EqHandle, FetchRequest, GetRequest, MdHandle, Me, MeHandle, Operand,
    PutRequest, Request, SearchOp, Source, User,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The calls of a host about a Portals card, under their names in programs. Numbers name counters and other objects.
#[pyclass(frozen)]
pub struct PortalsCalls(Arc<Handle>);

impl PortalsCalls {
    fn call(&self, py: Python<'_>, name: &'static str, call: PortalsCall, then: Option<Py<PyAny>>) -> Call {
        self.0.call(py, name, commands::Call::Portals(call), then)
    }

    fn set_up<'py>(&self, py: Python<'py>, setup: PortalsSetup) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.0, self.0.set_up(Setup::Portals(setup))?, None)
    }

    /// Posts an operation; triggered if there is a counter with its threshold.
    fn post(
        &self,
        names: [&'static str; 2],
        request: Request,
        trigger: Option<&Bound<'_, PyTuple>>,
        py: Python<'_>,
    ) -> PyResult<Call> {
        let (name, trigger) = triggered(names, trigger)?;
        Ok(self.call(py, name, PortalsCall::Post { request, trigger }, None))
    }
}

/// Returns the name of a call, triggered or not, and its trigger.
fn triggered(
    [at_once, later]: [&'static str; 2],
    trigger: Option<&Bound<'_, PyTuple>>,
) -> PyResult<(&'static str, Option<Trigger>)> {
    let Some(trigger) = trigger else { return Ok((at_once, None)) };
    let ct = ct_of(&trigger.get_item(0)?)?;
    Ok((later, Some(Trigger { ct, threshold: u64_of(&trigger.get_item(1)?, "threshold")? })))
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

/// Reads descriptor, length, rank, entry, match bits, both offsets, header data, user pointer, and the acknowledgement.
fn put_of(put: &Bound<'_, PyTuple>) -> PyResult<PutRequest> {
    let word = |place: usize, name: &str| u64_of(&*put.get_borrowed_item(place)?, name);
    let half = |place: usize, name: &str| u32_of(&*put.get_borrowed_item(place)?, name);
    Ok(PutRequest {
        md: MdHandle::from_bits(word(0, "md")?),
        length: word(1, "length_bytes")?,
        target: NodeId(half(2, "to")?),
        pt: half(3, "pt")?,
        match_bits: word(4, "match_bits")?,
        local_offset: word(5, "local_offset")?,
        remote_offset: word(6, "remote_offset")?,
        hdr_data: word(7, "hdr_data")?,
        user_ptr: word(8, "user_ptr")?,
        ack: ack_of(&*put.get_borrowed_item(9)?)?,
    })
}

/// Reads the descriptor for the reply, the offset in it, operator, type, and the operand.
fn fetch_of(put: &Bound<'_, PyTuple>, fetch: &Bound<'_, PyTuple>) -> PyResult<FetchRequest> {
    let (operator, datatype, operand): (String, String, Vec<u8>) =
        (fetch.get_item(2)?.extract()?, fetch.get_item(3)?.extract()?, fetch.get_item(4)?.extract()?);
    let wrong = |error: nicety::portals::Error| nicety::Error::Program(error.to_string());
    Ok(FetchRequest {
        get_md: MdHandle::from_bits(u64_of(&fetch.get_item(0)?, "get_md")?),
        local_get_offset: u64_of(&fetch.get_item(1)?, "local_get_offset")?,
        put: put_of(put)?,
        atomic: named(names::atomic(&operator, &datatype))?,
        operand: named(Operand::new(&operand).map_err(wrong))?,
    })
}

/// Reads match bits, ignore bits, rank, user, options, counter and user pointer of a match entry.
fn entry_of(entry: &Bound<'_, PyTuple>) -> PyResult<Me> {
    let source = optional(&entry.get_item(2)?, "source", u32_of)?;
    let user = optional(&entry.get_item(3)?, "uid", u32_of)?;
    let options: Vec<String> = entry.get_item(4)?.extract()?;
    Ok(Me {
        match_bits: u64_of(&entry.get_item(0)?, "match_bits")?,
        ignore_bits: u64_of(&entry.get_item(1)?, "ignore_bits")?,
        source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
        user: user.map_or(User::Any, User::Id),
        options: named(names::me_options(&options))?,
        ct: some(&entry.get_item(5)?, ct_of)?,
        user_ptr: u64_of(&entry.get_item(6)?, "user_ptr")?,
        ..Me::default()
    })
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

    /// Returns successes and failures.
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

    fn put(&self, put: &Bound<'_, PyTuple>, trigger: Option<&Bound<'_, PyTuple>>) -> PyResult<Call> {
        self.post(
            ["host.portals.put", "host.portals.triggered_put"],
            Request::Put(put_of(put)?),
            trigger,
            put.py(),
        )
    }

    fn get(&self, get: &Bound<'_, PyTuple>, trigger: Option<&Bound<'_, PyTuple>>) -> PyResult<Call> {
        let put = put_of(get)?;
        let get_of = GetRequest {
            local_offset: put.local_offset,
            remote_offset: put.remote_offset,
            user_ptr: put.user_ptr,
            ..GetRequest::new(put.md, put.length, put.target, put.pt, put.match_bits)
        };
        self.post(["host.portals.get", "host.portals.triggered_get"], Request::Get(get_of), trigger, get.py())
    }

    fn atomic(
        &self,
        put: &Bound<'_, PyTuple>,
        operator: &str,
        datatype: &str,
        trigger: Option<&Bound<'_, PyTuple>>,
    ) -> PyResult<Call> {
        let atomic = named(names::atomic(operator, datatype))?;
        let request = Request::Atomic(AtomicRequest { put: put_of(put)?, atomic });
        self.post(["host.portals.atomic", "host.portals.triggered_atomic"], request, trigger, put.py())
    }

    fn fetch_atomic(
        &self,
        put: &Bound<'_, PyTuple>,
        fetch: &Bound<'_, PyTuple>,
        trigger: Option<&Bound<'_, PyTuple>>,
    ) -> PyResult<Call> {
        let request = Request::FetchAtomic(fetch_of(put, fetch)?);
        self.post(
            ["host.portals.fetch_atomic", "host.portals.triggered_fetch_atomic"],
            request,
            trigger,
            put.py(),
        )
    }

    fn swap(
        &self,
        put: &Bound<'_, PyTuple>,
        fetch: &Bound<'_, PyTuple>,
        trigger: Option<&Bound<'_, PyTuple>>,
    ) -> PyResult<Call> {
        let request = Request::Swap(fetch_of(put, fetch)?);
        self.post(["host.portals.swap", "host.portals.triggered_swap"], request, trigger, put.py())
    }

    fn ct_inc(
        &self,
        ct: &Bound<'_, PyAny>,
        success: &Bound<'_, PyAny>,
        failure: &Bound<'_, PyAny>,
        trigger: Option<&Bound<'_, PyTuple>>,
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
        trigger: Option<&Bound<'_, PyTuple>>,
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

    /// Takes the number and the threshold of each counter.
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

    /// Appends a match entry. `entry` is as in `entry_of`. `more` is the list, the bytes to keep free, the handlers, and whether
    /// to wait.
    fn me_append(
        &self,
        buffer: &Bound<'_, PyAny>,
        pt: &Bound<'_, PyAny>,
        entry: &Bound<'_, PyTuple>,
        more: &Bound<'_, PyTuple>,
    ) -> PyResult<Call> {
        let list = named(names::list(&text_of(&more.get_item(0)?, "list", "overflow")?))?;
        let me = Me {
            min_free: u64_of(&more.get_item(1)?, "min_free")?,
            handlers: optional(&more.get_item(2)?, "handlers", u32_of)?,
            ..entry_of(entry)?
        };
        let (part, pt, wait) = (self.0.part(buffer)?, u32_of(pt, "pt")?, more.get_item(3)?.is_truthy()?);
        let call = PortalsCall::MeAppend { part, pt, me, list, wait };
        Ok(self.call(buffer.py(), "host.portals.me_append", call, None))
    }

    fn me_unlink(&self, me: &Bound<'_, PyAny>) -> PyResult<Call> {
        let call = PortalsCall::MeUnlink { me: MeHandle::from_bits(u64_of(me, "me")?) };
        Ok(self.call(me.py(), "host.portals.me_unlink", call, None))
    }

    fn me_search(
        &self,
        pt: &Bound<'_, PyAny>,
        entry: &Bound<'_, PyTuple>,
        delete: &Bound<'_, PyAny>,
    ) -> PyResult<Call> {
        let op = if delete.is_truthy()? { SearchOp::Delete } else { SearchOp::Only };
        let call = PortalsCall::MeSearch { pt: u32_of(pt, "pt")?, me: entry_of(entry)?, op };
        Ok(self.call(pt.py(), "host.portals.me_search", call, None))
    }

    fn atomic_sync(&self, py: Python<'_>) -> Call {
        self.call(py, "host.portals.atomic_sync", PortalsCall::AtomicSync, None)
    }
}
