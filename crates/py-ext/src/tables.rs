//! Tables of Arrow columns for Python. Packages such as pyarrow and polars get them without a copy, through the
//! capsules of the Arrow C data interface.

use crate::errors::InputError;
use nicety::record::tables::arrow_array::cast::AsArray;
use nicety::record::tables::arrow_array::ffi::FFI_ArrowSchema;
use nicety::record::tables::arrow_array::ffi_stream::FFI_ArrowArrayStream;
use nicety::record::tables::arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use nicety::record::tables::arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use nicety::record::tables::arrow_schema::DataType;
use nicety::record::timeline::Scale;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table of named columns, with units in the names. pyarrow, polars, DuckDB and other packages read it directly, for
/// example by `pyarrow.table(t)`.
#[pyclass(frozen)]
pub struct Table(RecordBatch);

/// Maximum number of rows of a table in a notebook.
const SHOWN: usize = 20;

/// The values of a column from Python. None becomes a null.
#[derive(FromPyObject)]
pub enum Column {
    Truth(Vec<Option<bool>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

impl Column {
    fn into_array(self) -> ArrayRef {
        match self {
            Column::Truth(values) => Arc::new(BooleanArray::from(values)),
            Column::Whole(values) => Arc::new(Int64Array::from(values)),
            Column::Real(values) => Arc::new(Float64Array::from(values)),
            Column::Text(values) => Arc::new(StringArray::from(values)),
        }
    }
}

#[pymethods]
impl Table {
    /// Returns a table of columns that have the same length. A column has booleans, whole numbers, floating-point numbers or
    /// texts.
    #[new]
    fn new(columns: Vec<(String, Column)>) -> PyResult<Table> {
        let arrays = columns.into_iter().map(|(name, column)| (name, column.into_array(), true));
        let made = RecordBatch::try_from_iter_with_nullable(arrays);
        made.map(Table).map_err(|error| InputError::new_err(format!("no table of these columns: {error}")))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.0.num_rows(), self.columns().join(", "))
    }

    /// Returns the first rows as HTML, for a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let html = py.import("nicety.show.html")?;
        let columns = self.columns();
        let first = Table(self.0.slice(0, self.0.num_rows().min(SHOWN)));
        let cells = columns.iter().map(|name| first.column(py, name)).collect::<PyResult<Vec<_>>>()?;
        html.call_method1("rows_html", (columns, cells, self.0.num_rows()))?.extract()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns a column as a list. A null becomes None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let array = self.named(name)?;
        match array.data_type() {
            DataType::Boolean => PyList::new(py, array.as_boolean().iter().collect::<Vec<_>>()),
            DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()),
            DataType::UInt32 => {
                PyList::new(py, array.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>())
            }
            DataType::Float64 => {
                PyList::new(py, array.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
            }
            DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter().collect::<Vec<_>>()),
            other => Err(PyRuntimeError::new_err(format!("a column of {other}"))),
        }
    }

    /// Returns a column of numbers as the bytes of 64-bit floating-point numbers in the machine's byte order. A null becomes NaN.
    fn reals<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let array = self.named(name)?;
        let real = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let values: Vec<f64> = match array.data_type() {
            DataType::Int64 => {
                array.as_primitive::<Int64Type>().iter().map(|value| real(value.map(|v| v as f64))).collect()
            }
            DataType::UInt32 => {
                array.as_primitive::<UInt32Type>().iter().map(|value| real(value.map(f64::from))).collect()
            }
            DataType::Float64 => array.as_primitive::<Float64Type>().iter().map(real).collect(),
            other => return Err(PyRuntimeError::new_err(format!("'{name}' is a column of {other}"))),
        };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns a column of texts as the bytes of 32-bit numbers in the machine's byte order, and the texts that they index. A null
    /// is an empty text.
    fn codes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
        let array = self.named(name)?;
        let Some(array) = array.as_string_opt::<i32>() else {
            return Err(PyRuntimeError::new_err(format!("'{name}' is no column of texts")));
        };
        let (mut known, mut texts, mut bytes) = (BTreeMap::new(), Vec::new(), Vec::new());
        for text in array.iter().map(Option::unwrap_or_default) {
            let code: u32 = *known.entry(text).or_insert_with(|| {
                texts.push(text.to_owned());
                texts.len() as u32 - 1
            });
            bytes.extend(code.to_ne_bytes());
        }
        Ok((PyBytes::new(py, &bytes), texts))
    }

    /// Returns the schema as the capsule of the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref());
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Returns the rows as the capsule of the Arrow C stream interface. A requested schema is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the request, and consumers convert the columns.
        drop(requested_schema);
        let rows = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    fn named(&self, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("no column '{name}'; there are {}", self.columns().join(", ")))
        })
    }
}

/// The recording of a run.
#[pyclass(frozen)]
pub struct Recording(pub nicety::record::Recording);

#[pymethods]
impl Recording {
    /// The level of recording: summary, messages, packets or everything.
    #[getter]
    fn level(&self) -> &'static str {
        self.0.level.name()
    }

    /// Returns a table with a row for each message.
    fn messages(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| self.0.messages_table()))
    }

    /// Returns a table with a row for each packet.
    fn packets(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| self.0.packets_table()))
    }

    /// Returns a table with a row for each run of a handler.
    fn handler_runs(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| self.0.handler_runs_table()))
    }

    /// Returns a table with a row for each use of a resource.
    fn resources(&self, py: Python<'_>) -> Table {
        Table(py.detach(|| self.0.resources_table()))
    }

    /// Maps the name of each table to the number of rows that were left out because the table was full.
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        self.0.left_out_by_table().into_iter().collect()
    }

    /// Returns the number of messages with stages, and a list of stages. Each stage is its name, the number of messages
    /// with this stage, and the sum of their times in the stage in picoseconds.
    fn breakdown(&self) -> (u64, Vec<(&'static str, u64, u64)>) {
        let (messages, stages) = self.0.breakdown();
        (messages, stages.iter().map(|s| (s.stage.name(), s.messages, s.total.ps())).collect())
    }

    /// Returns the timeline as the bytes of a Perfetto trace. `scale` is the unit of its clock: ns or ps.
    fn timeline<'py>(&self, py: Python<'py>, scale: &str) -> PyResult<Bound<'py, PyBytes>> {
        let scale: Scale = scale.parse().map_err(InputError::new_err::<String>)?;
        let bytes = py.detach(|| self.0.timeline(scale));
        Ok(PyBytes::new(py, &bytes))
    }
}
