//! Generates the C code of Portals calls from the table of calls: `portals_calls.h` and `portals_calls.c` in `shim/generated`.

use super::{CALLS, Call, Field, Function, OUTCOMES, Outcome};
use std::fmt::Write;

const HEAD: &str = "Made of crates/nicety/src/commands/table.rs by crates/exec/tests/portals_calls, and not to be changed by hand.";
/// Maximum length of a line in the generated files.
const WIDTH: usize = 120;

/// Returns the header: the numbers of calls, the structures of their arguments and outcomes, and a function for each call.
pub fn header() -> String {
    let mut text = format!(
        "/* Calls of Portals: their numbers, arguments and outcomes.\n *\n * {HEAD} */\n\n#ifndef NICETY_PORTALS_CALLS_H\n\
         #define NICETY_PORTALS_CALLS_H\n\n#include \"portals.h\"\n\nenum {{\n"
    );
    for (call, number) in CALLS.iter().zip(1..) {
        writeln!(text, "    OP_{} = {number},", call.name).unwrap();
    }
    text += "};\n";
    for outcome in OUTCOMES {
        text += &structure(&format!("told_{}", outcome.name.to_lowercase()), outcome.words.iter().copied());
    }
    for call in CALLS {
        text += &structure(&call.structure(), call.fields.iter().map(|field| field.name));
    }
    text += "\n/* Each makes its call, and returns a code of portals4.h. The outcome is that of a call that succeeds. */\n";
    for call in CALLS {
        let has = |words: &[&str], name: &str| match words.is_empty() {
            true => "NULL, 0".to_owned(),
            false => format!("{name}, sizeof *{name}"),
        };
        let fields: Vec<_> = call.fields.iter().map(|field| field.name).collect();
        let mut parameters = Vec::new();
        if !fields.is_empty() {
            parameters.push(format!("const struct {} *asked", call.structure()));
        }
        if !call.outcome().words.is_empty() {
            parameters.push(format!("struct told_{} *told", call.outcome.to_lowercase()));
        }
        text += &signature("static inline ", &call.function(), &parameters);
        let (asked, told) = (has(&fields, "asked"), has(call.outcome().words, "told"));
        write!(text, " {{\n    return portals_ask(OP_{}, {asked}, {told});\n}}\n", call.name).unwrap();
    }
    text + "\n#endif\n"
}

/// Returns a structure of words. Returns an empty text if the structure has no words.
fn structure(name: &str, words: impl Iterator<Item = &'static str>) -> String {
    let words: String = words.map(|word| format!("    uint64_t {word};\n")).collect();
    if words.is_empty() { words } else { format!("\nstruct {name} {{\n{words}}};\n") }
}

/// Returns the functions of `portals4.h` that only make a call.
pub fn functions() -> String {
    let mut text = format!(
        "/* Functions of Portals that check their arguments and make a call.\n *\n * {HEAD} */\n\n#include \"portals_calls.h\"\n"
    );
    for call in CALLS {
        for function in call.functions {
            text += &function.text(call);
        }
    }
    text
}

impl Call {
    fn structure(&self) -> String {
        format!("asked_{}", self.name.to_lowercase())
    }

    fn function(&self) -> String {
        format!("ask_{}", self.name.to_lowercase())
    }

    fn outcome(&self) -> &'static Outcome {
        OUTCOMES.iter().find(|outcome| outcome.name == self.outcome).expect("an outcome of the table")
    }
}

impl Field {
    /// Returns the C parameter of a function, the word that it becomes, and the check of it.
    fn in_c(&self) -> (String, String, Option<String>) {
        let name = self.name;
        let (parameter, word, check) = match self.kind {
            "word" => (format!("uint64_t {name}"), name.to_owned(), None),
            "pointer" => (format!("void *{name}"), format!("(uintptr_t){name}"), None),
            "bytes" => (format!("const void *{name}"), format!("(uintptr_t){name}"), None),
            "pt_options" => (format!("unsigned int {name}"), format!("{name} & ~PT_UNUSED"), None),
            "any_pt" => (format!("ptl_pt_index_t {name}"), name.to_owned(), None),
            "match_bits" => {
                (format!("ptl_match_bits_t {name}"), format!("portals_matches() ? {name} : 0"), None)
            }
            "trigger" => (
                format!("ptl_handle_ct_t {name}"),
                name.to_owned(),
                Some(format!("portals_triggered({name})")),
            ),
            // Some parameters take several words.
            "ptl_ct_event_t" => ("ptl_ct_event_t count".to_owned(), format!("count.{name}"), None),
            "operand" => (
                "const void *operand".to_owned(),
                "0".to_owned(),
                Some("portals_operand(operand, &asked)".to_owned()),
            ),
            "ptl_pt_index_t" => {
                (format!("{} {name}", self.kind), name.to_owned(), Some(format!("portals_index({name})")))
            }
            "ptl_process_t" => (
                format!("{} {name}", self.kind),
                "0".to_owned(),
                Some(format!("portals_rank({name}, 0, &asked.{name})")),
            ),
            "ptl_datatype_t" => {
                (format!("{} {name}", self.kind), name.to_owned(), Some(format!("portals_type({name})")))
            }
            kind => (format!("{kind} {name}"), name.to_owned(), None),
        };
        (parameter, word, check)
    }
}

/// The order of checks. A program gets the error of the first check that fails.
const CHECKS: [&str; 7] = [
    "portals_triggered(",
    "portals_check(",
    "portals_refuse(",
    "portals_index(",
    "portals_rank(",
    "portals_type(",
    "portals_operand(",
];

impl Function {
    fn text(&self, call: &Call) -> String {
        let (mut parameters, mut words, mut checks) = (Vec::new(), String::new(), Vec::new());
        match self.first {
            "ni" => {
                parameters.push("ptl_handle_ni_t ni_handle".to_owned());
                checks.push("portals_check(ni_handle)".to_owned());
            }
            "open" => checks.push("portals_check(NI_HANDLE)".to_owned()),
            _ => {}
        }
        for field in call.fields {
            let (parameter, mut word, check) = field.in_c();
            match self.own.iter().find(|(name, _)| *name == field.name) {
                Some((_, own)) => word = (*own).to_owned(),
                None => {
                    parameters.push(parameter);
                    checks.extend(check);
                }
            }
            writeln!(words, "        .{} = {word},", field.name).unwrap();
        }
        let mut arguments = if words.is_empty() { vec![] } else { vec!["&asked"] };
        if let Some((name, kind)) = self.result {
            parameters.push(format!("{kind} *{name}"));
            checks.push(format!("{name} ? PTL_OK : portals_refuse(PTL_ARG_INVALID, \"{name} is NULL\")"));
            arguments.push("&told");
        }
        parameters.dedup();
        checks.dedup();
        checks.sort_by_key(|check| CHECKS.iter().position(|name| check.contains(name)));
        checks.push(format!("{}({})", call.function(), arguments.join(", ")));
        let mut text = signature("", self.name, &parameters) + " {\n";
        if !words.is_empty() {
            write!(text, "    struct {} asked = {{\n{words}    }};\n", call.structure()).unwrap();
        }
        if self.result.is_some() {
            writeln!(text, "    struct told_{} told;", call.outcome.to_lowercase()).unwrap();
        }
        if checks.len() == 1 {
            write!(text, "    return {};\n}}\n", checks[0]).unwrap();
            return text;
        }
        writeln!(text, "    int code = {};", checks.remove(0)).unwrap();
        for check in checks {
            write!(text, "    if (!code)\n        code = {check};\n").unwrap();
        }
        if let Some((name, kind)) = self.result {
            write!(text, "    if (!code)\n        *{name} = ({kind})told.value;\n").unwrap();
        }
        text + "    return code;\n}\n"
    }
}

/// Returns the first lines of a function, none longer than the maximum.
fn signature(before: &str, name: &str, parameters: &[String]) -> String {
    let mut text = format!("\n{before}int {name}(");
    let indent = text.len() - 1;
    let mut column = indent;
    for (parameter, at) in parameters.iter().zip(1..) {
        let part = format!("{parameter}{}", if at < parameters.len() { "," } else { ")" });
        if column + part.len() + 3 > WIDTH {
            write!(text, "\n{}", " ".repeat(indent)).unwrap();
            column = indent;
        } else if at > 1 {
            text.push(' ');
            column += 1;
        }
        column += part.len();
        text += &part;
    }
    if parameters.is_empty() { text + "void)" } else { text }
}
