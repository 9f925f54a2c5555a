//! Generates TypeScript's types of reports from the Rust types: `web/src/reports.ts`, for the workbench page. The head of the
//! file has the command that rewrites it.

use crate::python_types::{array, last, references};
use crate::schemas::schemas;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

const FILE: &str = "web/src/reports.ts";
/// The command that writes the file.
const COMMAND: &str = "NICETY_WRITE=1 cargo test --locked -p nicety-bench --test all -- typescript_types";
/// The reports of the page. The file also has the types to which they refer.
const REPORTS: [&str; 3] = ["LineRateReport", "ProfileReport", "CheckReport"];

#[test]
fn typescripts_types_are_those_of_rust() {
    let made = typescript(&schemas(), &REPORTS);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE);
    if std::env::var_os("NICETY_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    // A checkout may have other line ends.
    let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(found == made, "{FILE} is not current; write it by {COMMAND}, then make web");
}

#[test]
fn a_report_becomes_an_interface_with_the_types_that_it_names() {
    let schemas = [
        ("Kind", json!({"oneOf": [{"const": "a"}, {"const": "b"}]})),
        ("Other", json!({"type": "string"})),
        (
            "Row",
            json!({"required": ["kind", "at"], "properties": {
                "kind": {"$ref": "#/$defs/Kind"}, "at": {"type": ["number", "null"]},
                "causes": {"type": "object", "additionalProperties": {"type": "integer"}},
                "lines": {"type": ["array", "null"], "items": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]}}}}),
        ),
    ];
    let schemas = schemas.map(|(name, schema)| (name.to_owned(), schema));
    let made = typescript(&schemas, &["Row"]);
    let (_, types) = made.split_once("\n\n").unwrap();
    assert_eq!(
        types,
        "export type Kind = \"a\" | \"b\";\n\nexport interface Row {\n  at: number | null;\n  causes?: Record<string, \
         number>;\n  kind: Kind;\n  lines?: (Kind | null)[];\n}\n"
    );
}

/// Returns the file with these reports.
fn typescript(schemas: &[(String, Value)], reports: &[&str]) -> String {
    let (mut named, mut next) = (Vec::new(), 0);
    named.extend(reports.iter().map(|&report| report.to_owned()));
    while let Some(name) = named.get(next) {
        let (_, schema) = schemas.iter().find(|(other, _)| other == name).expect("a schema of this name");
        for other in references(schema) {
            if !named.contains(&other) {
                named.push(other);
            }
        }
        next += 1;
    }
    let definitions = schemas.iter().filter(|(name, _)| named.contains(name)).map(definition);
    format!(
        "// Reports. Generated from the types in Rust by\n// {COMMAND}.\n\n{}",
        definitions.collect::<Vec<_>>().join("\n")
    )
}

fn definition((name, schema): &(String, Value)) -> String {
    let Some(fields) = schema["properties"].as_object() else {
        return format!("export type {name} = {};\n", union(schema));
    };
    let required: Vec<&str> = array(&schema["required"]).filter_map(Value::as_str).collect();
    let mut text = format!("export interface {name} {{\n");
    for (field, of) in fields {
        // An optional field is absent or has a value.
        let (mark, of) = match required.contains(&field.as_str()) {
            true => ("", union(of)),
            false => ("?", union(of).trim_end_matches(" | null").to_owned()),
        };
        writeln!(text, "  {field}{mark}: {of};").unwrap();
    }
    text + "}\n"
}

/// Returns the TypeScript type of a schema.
fn union(schema: &Value) -> String {
    types(schema).join(" | ")
}

/// Returns the alternatives of a schema.
fn types(schema: &Value) -> Vec<String> {
    if let Some(name) = last(&schema["$ref"]) {
        return vec![name];
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        return variants.iter().map(|variant| variant["const"].to_string()).collect();
    }
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().flat_map(types).collect();
    }
    if let Some(value) = schema.get("const") {
        return vec![value.to_string()];
    }
    let one = |of: &str| match of {
        "string" | "boolean" | "null" => of.to_owned(),
        "integer" | "number" => "number".to_owned(),
        "array" => match types(&schema["items"]).as_slice() {
            [item] => format!("{item}[]"),
            several => format!("({})[]", several.join(" | ")),
        },
        "object" => format!("Record<string, {}>", union(&schema["additionalProperties"])),
        other => panic!("a schema of type {other}"),
    };
    match &schema["type"] {
        Value::String(of) => vec![one(of)],
        Value::Array(of) => of.iter().filter_map(Value::as_str).map(one).collect(),
        other => panic!("a schema of type {other}: {schema}"),
    }
}
