//! The types that Python has for requests and rows are made of those here: `python/nicety/shared/types.py`.
//!
//! `NICETY_WRITE=1 cargo test -p nicety-bench --test all -- python_types` writes that file anew.

use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::Path;

const FILE: &str = "python/nicety/shared/types.py";
/// The longest line of Python.
const WIDTH: usize = 120;

#[test]
fn pythons_types_are_those_of_rust() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE);
    let made = python(&nicety_bench::schemas());
    if std::env::var_os("NICETY_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    // A checkout may have other line ends.
    let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        found == made,
        "{FILE} is not current; write it by NICETY_WRITE=1 cargo test -p nicety-bench --test all -- python_types"
    );
}

#[test]
fn what_a_schema_says_becomes_a_type() {
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (text, expected) in [
        (r##"{"$ref": "#/$defs/Row"}"##, "Row"),
        (r#"{"type": ["integer", "null"]}"#, "int | None"),
        (r#"{"type": ["array", "null"], "items": {"type": "string"}}"#, "list[str] | None"),
        (r#"{"type": "object", "additionalProperties": {"type": "number"}}"#, "dict[str, float]"),
        (r#"{"oneOf": [{"const": "a"}, {"const": "b-c"}]}"#, "Literal[\"a\", \"b-c\"]"),
        (r#"{"anyOf": [{"$ref": "a/B"}, {"type": "null"}]}"#, "B | None"),
    ] {
        assert_eq!(annotation(&schema(text)), expected);
    }
    let class = schema(
        r#"{"description": "A [`b::C`](d) of e. More.", "required": ["z"], "properties": {
            "a": {"type": ["boolean", "null"], "description": "Of\nwhat."}, "z": {"type": "string"}}}"#,
    );
    assert_eq!(
        definition("X", &class, "row"),
        "class X(TypedDict):\n    \"\"\"A `C` of e.\n\n    More.\n\n    Attributes:\n        a: Of what.\n    \"\"\"\n\n    z: \
         str\n    a: NotRequired[bool]\n"
    );
}

/// The whole file.
fn python(schemas: &[(String, Value)]) -> String {
    let mut text = "\"\"\"Requests and reports of benchmarks and applications: plain dicts, as in JSON.\n\nMade of the types \
                    in Rust by `crates/bench/tests/python_types.rs`, and not to be changed by hand.\n\"\"\"\n\nfrom __future__ \
                    import annotations\n\nfrom typing import Literal, NotRequired, TypedDict\n"
        .to_owned();
    for (name, schema) in schemas {
        write!(text, "\n\n{}", definition(name, schema, name)).unwrap();
    }
    // Names of types before a class are one line away from their text.
    text
}

fn definition(name: &str, schema: &Value, kind: &str) -> String {
    let Some(fields) = schema["properties"].as_object() else {
        let text = docstring(&describe(schema), "");
        return format!("{name} = {}\n{text}", annotation(schema));
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let optional = fields.keys().map(String::as_str).filter(|field| !required.contains(field));
    let order: Vec<&str> = required.iter().copied().chain(optional).collect();
    let mut text = format!("class {name}(TypedDict):\n{}", class_docstring(schema, fields, &order));
    for field in order {
        let mut of = annotation(&fields[field]);
        if !required.contains(&field) {
            // A field of a report is present or absent; an input may also be given as None.
            if !kind.ends_with("Request") && kind != "HandlerNames" {
                of = of.trim_end_matches(" | None").to_owned();
            }
            of = format!("NotRequired[{of}]");
        }
        writeln!(text, "    {field}: {of}").unwrap();
    }
    text
}

fn annotation(schema: &Value) -> String {
    let last =
        |path: &Value| path.as_str().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    if let Some(name) = last(&schema["$ref"]) {
        return name;
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        let names: Vec<String> = variants.iter().map(|variant| variant["const"].to_string()).collect();
        return format!("Literal[{}]", names.join(", "));
    }
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().map(annotation).collect::<Vec<_>>().join(" | ");
    }
    let one = |of: &str| match of {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "null" => "None".to_owned(),
        "array" => format!("list[{}]", annotation(&schema["items"])),
        "object" => format!("dict[str, {}]", annotation(&schema["additionalProperties"])),
        other => panic!("a schema of type {other}"),
    };
    match &schema["type"] {
        Value::String(of) => one(of),
        Value::Array(of) => of.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" | "),
        other => panic!("a schema of type {other}: {schema}"),
    }
}

/// A description on one line, without rustdoc's links.
fn describe(schema: &Value) -> String {
    let mut text = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    while let Some(begin) = text.find("[`") {
        let end = begin + text[begin..].find("`]").expect("a link ends");
        let name = text[begin + 2..end].rsplit("::").next().unwrap_or_default().to_owned();
        let rest = &text[end + 2..];
        let rest = match rest.strip_prefix('(') {
            Some(target) => &target[target.find(')').map_or(0, |end| end + 1)..],
            None => rest,
        };
        text = format!("{}`{name}`{rest}", &text[..begin]);
    }
    text
}

/// The first sentence stands alone.
fn docstring(text: &str, indent: &str) -> String {
    let (first, rest) = match text.split_once(". ") {
        Some((first, rest)) => (format!("{first}."), rest),
        None => (text.to_owned(), ""),
    };
    let mut made = format!("{indent}\"\"\"{first}");
    if !rest.is_empty() {
        write!(made, "\n\n{}\n{indent}", wrapped(rest, indent, indent).trim_end()).unwrap();
    }
    made + "\"\"\"\n"
}

fn class_docstring(schema: &Value, fields: &Map<String, Value>, order: &[&str]) -> String {
    let text = docstring(&describe(schema), "    ");
    let described = order.iter().filter(|field| fields[**field].get("description").is_some());
    let lines: String = described
        .map(|field| wrapped(&format!("{field}: {}", describe(&fields[*field])), "        ", "            "))
        .collect();
    let text = text.trim_end().trim_end_matches("\"\"\"").trim_end();
    format!("{text}\n\n    Attributes:\n{lines}    \"\"\"\n\n")
}

/// Lines of a text: the first one, and the others, behind these.
fn wrapped(text: &str, first: &str, others: &str) -> String {
    let (mut made, mut line) = (String::new(), first.to_owned());
    for word in text.split(' ') {
        let empty = line.trim().is_empty();
        if !empty && line.len() + 1 + word.len() > WIDTH {
            writeln!(made, "{line}").unwrap();
            line = format!("{others}{word}");
        } else {
            line += if empty { "" } else { " " };
            line += word;
        }
    }
    writeln!(made, "{line}").unwrap();
    made
}
