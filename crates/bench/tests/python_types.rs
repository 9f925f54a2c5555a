//! Generates Python's types of requests, rows and reports from the Rust types. The files are `types.py` and `reports.py` in
//! `python/nicety/_generated`. The head of each file has the command that rewrites it.

use crate::schemas::{run_schemas, schemas};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;

const FOLDER: &str = "python/nicety/_generated";
/// The command that writes the files.
const COMMAND: &str = "NICETY_WRITE=1 cargo test --locked -p nicety-bench --test all -- python_types";
/// Maximum length of a Python line.
const WIDTH: usize = 120;

#[test]
fn pythons_types_are_those_of_rust() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
    let (types, reports) = (python(&all_schemas()), dataclasses(&run_schemas()));
    for (name, made) in [("types.py", types), ("reports.py", reports)] {
        let path = folder.join(name);
        if std::env::var_os("NICETY_WRITE").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        // A checkout may have other line ends.
        let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert!(found == made, "{FOLDER}/{name} is not current; write it by {COMMAND}");
    }
}

/// Returns the schemas of benchmarks and applications, and the schemas of schedules and programs that these do not include.
fn all_schemas() -> Vec<(String, Value)> {
    let mut schemas = schemas();
    for (name, schema) in nicety_goal::schemas().into_iter().chain(nicety_exec::schemas()) {
        if schemas.iter().all(|(other, _)| *other != name) {
            schemas.push((name, schema));
        }
    }
    schemas
}

#[test]
fn a_type_follows_those_it_refers_to() {
    let named = |name: &str, of: Value| (name.to_owned(), of);
    let schemas = [
        named("A", json!({"properties": {"c": {"items": {"$ref": "#/$defs/C"}}}})),
        named("B", json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]})),
        named("C", json!({"type": "string"})),
    ];
    assert_eq!(ordered(&schemas).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["C", "A", "B"]);
}

#[test]
fn a_schema_becomes_a_type() {
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
        definition("X", &class),
        "class X(TypedDict):\n    \"\"\"A `C` of e.\n\n    More.\n\n    Attributes:\n        a: Of what.\n    \"\"\"\n\n    z: \
         str\n    a: NotRequired[bool]\n"
    );
}

/// Returns the first lines of a file.
fn head(title: &str, imports: &str) -> String {
    format!("\"\"\"{title}\n\nGenerated from the types in Rust by\n`{COMMAND}`.\n\"\"\"\n\n{imports}")
}

/// Returns the file with reports of runs, as classes with attributes.
fn dataclasses(schemas: &[(String, Value)]) -> String {
    let imports = "from __future__ import annotations\n\nfrom dataclasses import dataclass\n";
    let head = head("Reports of nodes, cards and links after a run.", imports);
    let class = |(name, schema): &(String, Value)| {
        let made = definition(name, schema).replacen("(TypedDict)", "", 1);
        format!("\n\n@dataclass(frozen=True)\n{made}")
    };
    head + &schemas.iter().map(class).collect::<String>()
}

/// Returns the file with requests and reports of benchmarks.
fn python(schemas: &[(String, Value)]) -> String {
    let imports = "from typing import Annotated, Literal, NotRequired, Required, TypedDict\n\nfrom nicety.shared.checks import \
                   U32, Expressions, Faults, Names, Numbers, Overrides, Place\nfrom nicety.shared.options import Option, \
                   shared\n";
    let title = "Requests and reports of benchmarks and applications: plain dicts, as in JSON.";
    let mut text = head(title, imports);
    let common = common(schemas);
    write!(text, "\n\n@shared\n{}", options(COMMON, &common, None)).unwrap();
    for (name, schema) in ordered(schemas) {
        let made = match name.ends_with("Options") {
            true => options(name, schema, Some(&common)),
            false => definition(name, schema),
        };
        write!(text, "\n\n{made}").unwrap();
    }
    text
}

/// Returns the schemas in an order in which each follows those that it refers to. Python then evaluates each annotation as it
/// makes the class; from text it would compile every annotation for itself, in half as much time again.
fn ordered(schemas: &[(String, Value)]) -> Vec<&(String, Value)> {
    let mut order = Vec::new();
    for schema in schemas {
        place(schema, schemas, &mut order);
    }
    order
}

/// Places a schema behind those that it refers to.
fn place<'a>(schema: &'a (String, Value), all: &'a [(String, Value)], order: &mut Vec<&'a (String, Value)>) {
    if order.iter().any(|placed| placed.0 == schema.0) {
        return;
    }
    for named in references(&schema.1) {
        if let Some(other) = all.iter().find(|(name, _)| *name == named && *name != schema.0) {
            place(other, all, order);
        }
    }
    order.push(schema);
}

/// Returns the names of types to which a schema refers.
pub(crate) fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(last);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Returns the name of a type from a path to its schema.
pub(crate) fn last(path: &Value) -> Option<String> {
    path.as_str().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned())
}

/// The name of the arguments that all requests of benchmarks between hosts have.
const COMMON: &str = "NetworkOptions";

/// Returns the schema of the arguments that all of these requests have.
fn common(schemas: &[(String, Value)]) -> Value {
    let (_, whole) = schemas.iter().find(|(name, _)| name == "MessagesOptions").expect("the first benchmark");
    let field = |name: &str| (name.to_owned(), whole["properties"][name].clone());
    let fields: Map<String, Value> =
        ["topology", "flow_control", "noise", "faults", "seed"].map(field).into_iter().collect();
    json!({ "description": "The network of a run, and what is random in it.", "properties": fields })
}

/// Returns the keyword arguments of a Python function from the schema of a request. They also define the options of the command
/// line. A request with all common arguments inherits these.
fn options(name: &str, schema: &Value, common: Option<&Value>) -> String {
    let mut fields = schema["properties"].as_object().expect("a request is an object").clone();
    let common = common.and_then(|common| common["properties"].as_object());
    let inherits = common.filter(|common| common.iter().all(|(name, of)| fields.get(name) == Some(of)));
    inherits.into_iter().flat_map(Map::keys).for_each(|name| drop(fields.remove(name)));
    let fields = &fields;
    let base = if inherits.is_some() { COMMON } else { "TypedDict" };
    let required: Vec<&str> = array(&schema["required"]).filter_map(Value::as_str).collect();
    let given = |field: &&String| field.as_str() != "benchmark" && fields[*field]["format"] != "derived";
    let (first, then): (Vec<_>, Vec<_>) =
        fields.keys().filter(given).partition(|name| required.contains(&name.as_str()));
    let order: Vec<&str> = first.into_iter().chain(then).map(String::as_str).collect();
    let text = with_attributes(&paragraphs(schema), fields, &order);
    let mut text = format!("class {name}({base}, total=False):\n{text}");
    for field in order {
        let (of, option) = (argument(field, &fields[field]), option(&fields[field]));
        // Python takes the command line's default of a required argument.
        let must = required.contains(&field) && fields[field]["usual"].is_null();
        let (begin, inner, end) = match must {
            true => ("Required[", format!("Annotated[{of}, {option}]"), "]"),
            false => ("Annotated[", format!("{of} | None, {option}"), "]"),
        };
        let line = format!("    {field}: {begin}{inner}{end}");
        let line = if line.len() <= WIDTH {
            line
        } else {
            format!("    {field}: {begin}\n        {inner}\n    {end}")
        };
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// Returns the Python type of an argument. Arguments may have more types than JSON has.
fn argument(name: &str, schema: &Value) -> String {
    let json = annotation(schema);
    match (json.trim_end_matches(" | None"), schema["format"].as_str()) {
        ("list[str]", _) if name == "overrides" => "Overrides",
        ("list[str]", Some("expressions")) => "Expressions",
        ("list[str]", _) => "Names",
        ("list[int]", _) if schema["items"]["format"] == "uint8" => "bytes",
        ("list[int]", _) => "Numbers",
        (_, Some("path")) => "Place",
        (_, Some("faults")) => "Faults",
        (other, _) => other,
    }
    .to_owned()
}

/// Returns the properties of an argument that are not in its type.
fn option(schema: &Value) -> String {
    let mut made = Vec::new();
    if schema["items"]["format"] == "uint8" {
        made.push("default=b\"\"".to_owned());
    } else if !schema["default"].is_null() && schema["default"] != Value::Array(Vec::new()) {
        made.push(format!("default={}", python_value(&schema["default"])));
    }
    let of = if schema["items"].is_object() { &schema["items"] } else { schema };
    if let Some(least) = of["minimum"].as_u64().filter(|&least| least > 0) {
        made.push(format!("least={least}"));
    }
    match (of["maximum"].as_u64(), of["format"].as_str()) {
        (_, Some("uint8")) => {}
        (Some(most), _) => made.push(format!("most={most}")),
        (None, Some("uint32")) => made.push("most=U32".to_owned()),
        (None, _) => {}
    }
    for (key, value) in ["usual", "metavar", "flag", "example", "only"].map(|key| (key, &schema[key])) {
        if !value.is_null() {
            made.push(format!("{key}={}", python_value(value)));
        }
    }
    format!("Option({})", made.join(", "))
}

fn python_value(value: &Value) -> String {
    let listed = |items: Vec<String>| items.join(", ");
    match value {
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::Array(items) => format!("[{}]", listed(items.iter().map(python_value).collect())),
        Value::Object(items) => {
            format!(
                "{{{}}}",
                listed(
                    items.iter().map(|(key, item)| format!("\"{key}\": {}", python_value(item))).collect()
                )
            )
        }
        other => other.to_string(),
    }
}

pub(crate) fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn definition(name: &str, schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object() else {
        let text = docstring(&describe(schema), "");
        return format!("{}\n{text}", alias(name, schema));
    };
    let required: Vec<&str> = array(&schema["required"]).filter_map(Value::as_str).collect();
    let optional = fields.keys().map(String::as_str).filter(|field| !required.contains(field));
    let order: Vec<&str> = required.iter().copied().chain(optional).collect();
    let mut text = format!("class {name}(TypedDict):\n{}", class_docstring(schema, fields, &order));
    for field in order {
        let mut of = annotation(&fields[field]);
        if !required.contains(&field) {
            // A field of a report is present or absent, but an input may also be given as None.
            if name != "HandlerNames" {
                of = of.trim_end_matches(" | None").to_owned();
            }
            of = format!("NotRequired[{of}]");
        }
        writeln!(text, "    {field}: {of}").unwrap();
    }
    text
}

/// Returns the definition of a type alias. If the values do not fit on one line, each has its own line.
fn alias(name: &str, schema: &Value) -> String {
    let line = format!("{name} = {}", annotation(schema));
    if line.len() <= WIDTH {
        return line;
    }
    let values: String =
        array(&schema["oneOf"]).map(|variant| format!("    {},\n", variant["const"])).collect();
    format!("{name} = Literal[\n{values}]")
}

fn annotation(schema: &Value) -> String {
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

/// Returns a description on one line, without the links of rustdoc.
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

/// Returns the description of a request, divided into paragraphs.
fn paragraphs(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let lines = |paragraph: &str| wrapped(&paragraph.replace('\n', " "), "    ", "    ");
    let text = text.split("\n\n").map(lines).collect::<Vec<_>>().join("\n");
    format!("    \"\"\"{}", text.trim())
}

/// Returns a docstring. Its first sentence has a line of its own.
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
    with_attributes(text.trim_end().trim_end_matches("\"\"\"").trim_end(), fields, order)
}

fn with_attributes(text: &str, fields: &Map<String, Value>, order: &[&str]) -> String {
    let described = order.iter().filter(|field| fields[**field].get("description").is_some());
    let lines: String = described
        .map(|field| wrapped(&format!("{field}: {}", describe(&fields[*field])), "        ", "            "))
        .collect();
    format!("{text}\n\n    Attributes:\n{lines}    \"\"\"\n\n")
}

/// Wraps a text. `first` is the indent of the first line, and `others` that of all other lines.
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
