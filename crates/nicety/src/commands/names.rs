//! Parses names of options, operators, lists and similar items. The names are those of the Portals specification
//! without `PTL_`, and those of card specifications.

use crate::Error;
use crate::qnix::TransferMethod;
use nicety_nic_nfp::MemoryKind;
use nicety_portals::{
    AckRequest, Atomic, AtomicOp, Datatype, List, MdOptions, MeOptions, PtOptions, StatusRegister,
};

/// Parses options of a match entry, such as `op_put`.
///
/// # Errors
/// [`Error::Input`] with the valid names when an option does not exist.
pub fn me_options(names: &[String]) -> Result<MeOptions, Error> {
    options(names, MeOptions::from_name, "match entry")
}

/// Parses options of a memory descriptor, such as `event_ct_send`.
///
/// # Errors
/// Those of [`me_options`].
pub fn md_options(names: &[String]) -> Result<MdOptions, Error> {
    options(names, MdOptions::from_name, "memory descriptor")
}

/// Parses options of a portal table entry, such as `flowctrl`.
///
/// # Errors
/// Those of [`me_options`].
pub fn pt_options(names: &[String]) -> Result<PtOptions, Error> {
    options(names, PtOptions::from_name, "portal table entry")
}

/// Parses `priority` or `overflow`.
///
/// # Errors
/// [`Error::Input`] for any other name.
pub fn list(name: &str) -> Result<List, Error> {
    one_of(name, [("priority", List::Priority), ("overflow", List::Overflow)], "list")
}

/// Parses an acknowledgement: `no_ack`, `ack`, `ct_ack` or `oc_ack`.
///
/// # Errors
/// [`Error::Input`] for any other name.
pub fn ack(name: &str) -> Result<AckRequest, Error> {
    let names = [
        ("no_ack", AckRequest::None),
        ("ack", AckRequest::Full),
        ("ct_ack", AckRequest::Counting),
        ("oc_ack", AckRequest::OperationCompleted),
    ];
    one_of(name, names, "acknowledgement")
}

/// Parses an operator such as `sum`, and a datatype such as `uint64` (without `_T`).
///
/// # Errors
/// [`Error::Input`] when the operator or type does not exist, [`Error::Program`] when the operator does not apply to the type.
pub fn atomic(operator: &str, datatype: &str) -> Result<Atomic, Error> {
    let short = |name: &str| name.trim_start_matches("PTL_").trim_end_matches("_T").to_lowercase();
    let operators = AtomicOp::ALL.iter().map(|&op| (short(op.name()), op));
    let datatypes = Datatype::ALL.iter().map(|&datatype| (short(datatype.name()), datatype));
    let (op, datatype) =
        (one_of(operator, operators, "atomic operator")?, one_of(datatype, datatypes, "type of items")?);
    Atomic::new(op, datatype).map_err(|error| Error::Program(error.to_string()))
}

/// Parses a status register, such as `drop_count`.
///
/// # Errors
/// [`Error::Input`] when the register does not exist.
pub fn status_register(name: &str) -> Result<StatusRegister, Error> {
    one_of(name, StatusRegister::ALL.map(|register| (register.name(), register)), "status register")
}

/// Parses a memory of a card with microengines: `cls`, `ctm`, `imem` or `emem`.
///
/// # Errors
/// [`Error::Input`] when the memory does not exist.
pub fn card_memory(name: &str) -> Result<MemoryKind, Error> {
    one_of(name, MemoryKind::ALL.map(|kind| (kind.key(), kind)), "memory of the card")
}

/// Parses the method of a transfer between a process and its card, such as `auto`.
///
/// # Errors
/// [`Error::Input`] when the method does not exist.
pub fn how(name: &str) -> Result<TransferMethod, Error> {
    one_of(name, TransferMethod::ALL.map(|how| (how.name(), how)), "way to move a message")
}

/// Returns the item with this name. The error calls the items `what`, and lists their names.
fn one_of<N: AsRef<str>, T>(
    name: &str,
    known: impl IntoIterator<Item = (N, T)>,
    what: &str,
) -> Result<T, Error> {
    let mut others = Vec::new();
    for (own, value) in known {
        if own.as_ref() == name {
            return Ok(value);
        }
        others.push(own.as_ref().to_owned());
    }
    Err(Error::Input(format!("'{name}' is no {what}; there are {}", others.join(", "))))
}

fn options<O: bitflags::Flags>(
    names: &[String],
    find: impl Fn(&str) -> Option<O>,
    of: &str,
) -> Result<O, Error> {
    let mut options = O::empty();
    for name in names {
        let option = find(&name.to_uppercase()).ok_or_else(|| {
            let known: Vec<String> = O::all().iter_names().map(|(n, _)| n.to_lowercase()).collect();
            Error::Input(format!("'{name}' is no option of a {of}; there are {}", known.join(", ")))
        })?;
        options.insert(option);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_another_is_told_which_there_are() {
        assert_eq!(
            me_options(&["op_put".into(), "USE_ONCE".into()]),
            Ok(MeOptions::OP_PUT | MeOptions::USE_ONCE)
        );
        assert_eq!(pt_options(&["flowctrl".into()]), Ok(PtOptions::FLOWCTRL));
        assert_eq!(list("overflow"), Ok(List::Overflow));
        assert_eq!(ack("ct_ack"), Ok(AckRequest::Counting));
        assert_eq!(atomic("sum", "float_complex").unwrap().datatype(), Datatype::FloatComplex);
        assert_eq!(how("auto"), Ok(TransferMethod::Auto));
        let text = |error: Error| error.to_string();
        assert_eq!(
            list("first").map_err(text),
            Err("'first' is no list; there are priority, overflow".into())
        );
        let wrong = md_options(&["op_put".into()]).map_err(text).unwrap_err();
        assert!(
            wrong.starts_with("'op_put' is no option of a memory descriptor; there are event_"),
            "{wrong}"
        );
        assert!(matches!(atomic("sum", "bool"), Err(Error::Input(_))));
        assert!(matches!(atomic("band", "float"), Err(Error::Program(_))));
    }
}
