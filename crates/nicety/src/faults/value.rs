//! Parses a document of faults, in any of its notations.

use super::Problem;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and its line number if the notation has lines.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) line: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// A number as the user wrote it, or any value in a line of `key=value` pairs. Such values have no quotes, so their
    /// type is unknown.
    Loose(String),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    /// A value of a type that no key accepts, with the name of the type.
    Other(&'static str),
}

/// Parses a document.
pub(super) fn document(text: &str) -> Result<Node, Problem> {
    if text.trim_start().starts_with('{') {
        let value = serde_json::from_str(text).map_err(|error| format!(": {error}"))?;
        Ok(from_json(value))
    } else if text.contains(['\n', '[', '"', '\'', '#']) {
        let table = DeTable::parse(text).map_err(|error| {
            let line =
                error.span().map_or_else(String::new, |span| format!(", line {}", line_of(text, span.start)));
            format!("{line}: {}", error.message())
        })?;
        Ok(from_table(text, table.get_ref(), 0))
    } else {
        line(text)
    }
}

fn line(text: &str) -> Result<Node, Problem> {
    let mut entries: Vec<(String, Node)> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!(": '{part}' has no value; write KEY=VALUE, as in loss=1e-3,seed=7"))?;
        let (key, node) = (key.trim().to_owned(), Node::loose(value.trim(), None));
        match entries.iter_mut().find(|(other, _)| *other == key) {
            None => entries.push((key, node)),
            // Only the key `fail` may occur twice.
            Some((_, before)) if key == "fail" => match &mut before.value {
                Value::List(nodes) => nodes.push(node),
                _ => before.value = Value::List(vec![before.clone(), node]),
            },
            Some(_) => return Err(node.problem(&key, "it appears twice")),
        }
    }
    Ok(Node { value: Value::Table(entries), line: None })
}

fn from_json(value: serde_json::Value) -> Node {
    use serde_json::Value as Json;
    let value = match value {
        Json::Null => Value::Other("null"),
        Json::Bool(flag) => Value::Flag(flag),
        Json::Number(number) => Value::Loose(number.to_string()),
        Json::String(text) => Value::Text(text),
        Json::Array(items) => Value::List(items.into_iter().map(from_json).collect()),
        Json::Object(entries) => {
            Value::Table(entries.into_iter().map(|(key, value)| (key, from_json(value))).collect())
        }
    };
    Node { value, line: None }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

fn from_table(text: &str, table: &DeTable<'_>, at: usize) -> Node {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), from_toml(text, value))
    };
    Node { value: Value::Table(table.iter().map(entry).collect()), line: Some(line_of(text, at)) }
}

fn from_toml(text: &str, value: &Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(_) | DeValue::Float(_) => Value::Loose(text[value.span()].replace('_', "")),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(items.iter().map(|item| from_toml(text, item)).collect()),
        DeValue::Table(table) => return from_table(text, table, at),
    };
    Node { value, line: Some(line_of(text, at)) }
}

impl Node {
    pub(super) fn loose(text: &str, line: Option<usize>) -> Node {
        Node { value: Value::Loose(text.to_owned()), line }
    }

    /// Returns an error about the value of a key, with its line number if known.
    pub(super) fn problem(&self, key: &str, what: &str) -> Problem {
        let line = self.line.map_or_else(String::new, |line| format!(", line {line}"));
        format!("{line}: {key}: {what}")
    }

    /// Returns the entries of a table. Each entry must have one of these keys.
    pub(super) fn table(&self, name: &str, keys: &[&str]) -> Result<&[(String, Node)], Problem> {
        let Value::Table(entries) = &self.value else {
            return Err(self.problem(name, "it is not a table"));
        };
        let unknown = entries.iter().find(|(key, _)| !keys.contains(&key.as_str()));
        match unknown {
            None => Ok(entries),
            Some((key, node)) => {
                let key = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                Err(node.problem(&key, &format!("there is no such key; the keys are {}", keys.join(", "))))
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the items of a list. A single value counts as a list of one item.
    pub(super) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(nodes) => nodes,
            _ => std::slice::from_ref(self),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<&str, Problem> {
        match &self.value {
            Value::Text(text) | Value::Loose(text) => Ok(text),
            _ => Err(self.problem(key, &format!("{} is no text", self.shown()))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<f64, Problem> {
        let number = match &self.value {
            Value::Loose(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        };
        number.ok_or_else(|| {
            self.problem(key, &format!("{} is no number; write one such as 0.001", self.shown()))
        })
    }

    pub(super) fn rate(&self, key: &str) -> Result<f64, Problem> {
        let rate = self.number(key)?;
        let what = || format!("{rate} is no rate; write a number from 0 to 1, such as 1e-3");
        // Converts -0 to 0.
        if (0.0..=1.0).contains(&rate) { Ok(rate.abs()) } else { Err(self.problem(key, &what())) }
    }

    pub(super) fn whole(&self, key: &str, least: u64) -> Result<u64, Problem> {
        let number = match &self.value {
            Value::Loose(text) => text.parse().ok().filter(|&number| number >= least),
            _ => None,
        };
        let shown = self.shown();
        let shown = if self.number(key).is_ok() { shown.trim_matches('\'') } else { &shown };
        number.ok_or_else(|| self.problem(key, &format!("{shown} is no whole number from {least} on")))
    }

    fn shown(&self) -> String {
        match &self.value {
            Value::Text(text) | Value::Loose(text) => format!("'{text}'"),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(what) => (*what).to_owned(),
        }
    }
}
