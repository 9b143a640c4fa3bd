//! Records to columns: of Kafka's batches, and of the lines of a file. sfm_stream/events/native_extractor.py calls it.

use memchr::memchr_iter;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};
use xxhash_rust::xxh64::xxh64;

use crate::codecs::Codecs;
use crate::fields::{Fields, Paths, Value};
use crate::key_index::KeyIndex;
use crate::keys::{Kind, push_part};
use crate::records;
use crate::row_keys::RowKeys;
use crate::times::Times;

/// Room for so many rows is made at once, whatever a header says.
const MOST_ROWS_AHEAD: usize = 1 << 16;

/// offsets (int64), arrivals (int64; none of lines), event times (int64), cells (uint32), the id of each row's key or
/// -1 - the number of a new one (int32); the new keys; the row in which each occurs first (int32); the odd rows (int32),
/// and their records.
type Answer<'py> = (
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyList>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyList>,
);

/// Reads the plain records of one schema. It keeps what the schema says, and nothing of the records.
#[pyclass(frozen)]
pub struct PlainRecords {
    paths: Paths,
    times: Times,
    bucket_bits: u32,
    last_level: u32,
}

#[pymethods]
impl PlainRecords {
    /// None where this schema is for Python alone.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn of(
        item: Vec<String>,
        time: Option<Vec<String>>,
        key: Vec<Vec<String>>,
        unit: &str,
        naive_is_utc: bool,
        band_ms: (i64, i64),
        max_record_bytes: usize,
        bucket_bits: u32,
        levels: u32,
    ) -> Option<PlainRecords> {
        let times = Times::new(unit, naive_is_utc, band_ms.0, band_ms.1)?;
        let paths = Paths::new(item, time, key, max_record_bytes)?;
        Some(PlainRecords {
            paths,
            times,
            bucket_bits,
            last_level: levels - 1,
        })
    }

    /// The records of whole batches in message format 2, of each text from its own first offset on. None where a batch
    /// is not plain: of another format, damaged, or of more than `most_bytes` when it is decompressed.
    fn batches<'py>(
        &self,
        py: Python<'py>,
        batches: Vec<Bound<'py, PyBytes>>,
        firsts: Vec<i64>,
        most_bytes: usize,
        index: PyRef<'py, KeyIndex>,
    ) -> PyResult<Option<Answer<'py>>> {
        let index: &KeyIndex = &index;
        let batches: Vec<&[u8]> = batches.iter().map(|batch| batch.as_bytes()).collect();
        let rows = py.detach(|| {
            let ahead = batches
                .iter()
                .map(|batch| records::count(batch))
                .fold(0, usize::saturating_add);
            let mut rows = Rows::new(self, index, ahead);
            let mut codecs = Codecs::default();
            for (batch, first) in batches.iter().zip(firsts) {
                records::walk(batch, first, most_bytes, &mut codecs, |record| {
                    rows.arrivals.push(record.arrival_ms);
                    rows.push(record.offset, record.arrival_ms, record.value);
                })?;
            }
            rows.keys.look_up();
            Some(rows)
        });
        rows.map(|rows| rows.answer(py)).transpose()
    }

    /// The lines of each of `texts`, whose first byte has this offset. A carriage return before a newline is no part of
    /// a line, an empty line is no record, and a long line has its first `most_bytes` as its record.
    fn lines<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyBytes>>,
        firsts: Vec<i64>,
        most_bytes: usize,
        index: PyRef<'py, KeyIndex>,
    ) -> PyResult<Answer<'py>> {
        let index: &KeyIndex = &index;
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let rows = py.detach(|| {
            let mut rows = Rows::new(self, index, texts.iter().map(|text| text.len() / 64).sum());
            for (text, first) in texts.iter().zip(firsts) {
                let mut start = 0;
                for end in memchr_iter(b'\n', text).chain([text.len()]) {
                    let line = &text[start..end];
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    if !line.is_empty() {
                        rows.push(
                            first + start as i64,
                            records::NO_TIME,
                            Some(&line[..line.len().min(most_bytes)]),
                        );
                    }
                    start = end + 1;
                }
            }
            rows.keys.look_up();
            rows
        });
        rows.answer(py)
    }
}

/// The rows so far.
struct Rows<'a> {
    reader: &'a PlainRecords,
    fields: Fields,
    several: Vec<u8>,
    offsets: Vec<i64>,
    arrivals: Vec<i64>,
    times: Vec<i64>,
    cells: Vec<u32>,
    keys: RowKeys<'a>,
    odd: Vec<i32>,
    odd_bytes: Vec<u8>,
    /// Of each odd row the end of its record in `odd_bytes`; None where it has no value.
    odd_ends: Vec<Option<usize>>,
}

impl<'a> Rows<'a> {
    fn new(reader: &'a PlainRecords, index: &'a KeyIndex, ahead: usize) -> Rows<'a> {
        let ahead = ahead.min(MOST_ROWS_AHEAD);
        Rows {
            reader,
            fields: reader.paths.no_fields(),
            several: Vec::new(),
            offsets: Vec::with_capacity(ahead),
            arrivals: Vec::with_capacity(ahead),
            times: Vec::with_capacity(ahead),
            cells: Vec::with_capacity(ahead),
            keys: RowKeys::new(index, ahead),
            odd: Vec::new(),
            odd_bytes: Vec::new(),
            odd_ends: Vec::new(),
        }
    }

    #[inline(always)]
    fn push(&mut self, offset: i64, arrival_ms: i64, value: Option<&[u8]>) {
        self.offsets.push(offset);
        match value {
            Some(record) if self.read(record, arrival_ms) => self.push_plain(record),
            _ => self.push_odd(value),
        }
    }

    #[inline(always)]
    fn read(&mut self, record: &[u8], arrival_ms: i64) -> bool {
        let PlainRecords { paths, times, .. } = self.reader;
        if !paths.has_time {
            match times.plausible(arrival_ms) {
                Some(time_ms) => self.fields.time_ms = time_ms,
                None => return false,
            }
        }
        paths.read(record, times, &mut self.fields)
    }

    #[inline(always)]
    fn push_plain(&mut self, record: &[u8]) {
        let hash = match self.fields.item {
            Value::Text { start, end } => xxh64(&record[start..end], 0),
            Value::Integer(value) => xxh64(&value.to_le_bytes(), 0),
        };
        match self.fields.key[..] {
            [Value::Text { start, end }] => self.keys.push(Kind::Text, &record[start..end]),
            [Value::Integer(value)] => self.keys.push(Kind::Integer, &value.to_le_bytes()),
            ref parts => {
                self.several.clear();
                for part in parts {
                    match *part {
                        Value::Text { start, end } => push_part(&mut self.several, Kind::Text, &record[start..end]),
                        Value::Integer(value) => push_part(&mut self.several, Kind::Integer, &value.to_le_bytes()),
                    }
                }
                self.keys.push(Kind::Parts, &self.several);
            }
        }
        self.times.push(self.fields.time_ms);
        self.cells.push(self.cell(hash));
    }

    /// As `SketchShape.cells_of`: the bucket from the top bits, the level from the zeros at the other end.
    #[inline(always)]
    fn cell(&self, hash: u64) -> u32 {
        let PlainRecords {
            bucket_bits,
            last_level,
            ..
        } = *self.reader;
        let bucket = (hash >> (64 - bucket_bits)) as u32;
        let zeros = (hash | 1 << (64 - bucket_bits)).trailing_zeros();
        zeros.min(last_level) << bucket_bits | bucket
    }

    #[cold]
    fn push_odd(&mut self, value: Option<&[u8]>) {
        self.odd.push(self.keys.next_row() as i32);
        self.odd_bytes.extend_from_slice(value.unwrap_or_default());
        self.odd_ends.push(value.map(|_| self.odd_bytes.len()));
        self.times.push(records::NO_TIME);
        self.cells.push(0);
        self.keys.push_odd();
    }

    fn answer<'py>(self, py: Python<'py>) -> PyResult<Answer<'py>> {
        let odd_records = PyList::empty(py);
        let mut start = 0;
        for end in self.odd_ends {
            match end {
                None => odd_records.append(py.None())?,
                Some(end) => {
                    odd_records.append(PyBytes::new(py, &self.odd_bytes[start..end]))?;
                    start = end;
                }
            }
        }
        Ok((
            column(py, &self.offsets, i64::to_ne_bytes)?,
            column(py, &self.arrivals, i64::to_ne_bytes)?,
            column(py, &self.times, i64::to_ne_bytes)?,
            column(py, &self.cells, u32::to_ne_bytes)?,
            column(py, self.keys.ids(), i32::to_ne_bytes)?,
            self.keys.new_keys(py)?,
            column(py, self.keys.first_rows(), i32::to_ne_bytes)?,
            column(py, &self.odd, i32::to_ne_bytes)?,
            odd_records,
        ))
    }
}

/// The memory of a column, for np.frombuffer.
pub fn column<'py, T: Copy, const SIZE: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: impl Fn(T) -> [u8; SIZE],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, values.len() * SIZE, |out| {
        for (place, value) in out.chunks_exact_mut(SIZE).zip(values) {
            place.copy_from_slice(&bytes(*value));
        }
        Ok(())
    })
}
