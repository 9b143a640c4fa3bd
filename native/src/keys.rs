//! The distinct counting keys of one call, in the order in which they first occur.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use xxhash_rust::xxh64::xxh64;

/// So many slots are looked at for a key; one that is not found there is given again, which Python takes well.
///
/// The hash has no secret: keys that are made to meet cost the whole number of probes, and are then made and looked up in
/// Python once a row instead of once a call. That is as much as keys of which each occurs once cost, and no more.
const PROBES: usize = 16;
const EMPTY: u32 = u32::MAX;

/// What the bytes of a key mean.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// One text: its UTF-8.
    Text,
    /// One integer: eight bytes.
    Integer,
    /// Any other number of parts: of each its kind, its length (four bytes) and its bytes.
    Parts,
}

struct Entry {
    hash: u64,
    kind: Kind,
    start: usize,
    end: usize,
    row: u32,
}

pub struct Keys {
    slots: Vec<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Keys {
    pub fn new() -> Keys {
        Keys {
            slots: vec![EMPTY; 256],
            entries: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// The number of a key. `row`: kept if it is a new one.
    #[inline(always)]
    pub fn number(&mut self, kind: Kind, key: &[u8], row: u32) -> u32 {
        let hash = xxh64(key, kind as u64);
        let mask = self.slots.len() - 1;
        let mut free = None;
        for probe in 0..PROBES {
            let slot = (hash as usize + probe) & mask;
            let number = self.slots[slot];
            if number == EMPTY {
                free = Some(slot);
                break;
            }
            let entry = &self.entries[number as usize];
            if entry.hash == hash && entry.kind == kind && &self.bytes[entry.start..entry.end] == key {
                return number;
            }
        }
        self.add(
            Entry {
                hash,
                kind,
                start: 0,
                end: 0,
                row,
            },
            key,
            free,
        )
    }

    fn add(&mut self, mut entry: Entry, key: &[u8], free: Option<usize>) -> u32 {
        let number = self.entries.len() as u32;
        entry.start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        entry.end = self.bytes.len();
        self.entries.push(entry);
        if let Some(slot) = free {
            self.slots[slot] = number;
        }
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 4;
        self.slots = vec![EMPTY; size];
        for (number, entry) in self.entries.iter().enumerate() {
            let free = (0..PROBES).map(|probe| (entry.hash as usize + probe) & (size - 1));
            if let Some(slot) = free.into_iter().find(|slot| self.slots[*slot] == EMPTY) {
                self.slots[slot] = number as u32;
            }
        }
    }

    /// The row in which each key occurs first, ascending.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.row)
    }

    /// The keys as a KeyTable holds them.
    pub fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let keys: PyResult<Vec<_>> = self
            .entries
            .iter()
            .map(|entry| {
                let bytes = &self.bytes[entry.start..entry.end];
                match entry.kind {
                    Kind::Text => part(py, Kind::Text, bytes),
                    Kind::Integer => part(py, Kind::Integer, bytes),
                    Kind::Parts => Ok(PyTuple::new(py, parts(py, bytes)?)?.into_any()),
                }
            })
            .collect();
        PyList::new(py, keys?)
    }
}

/// Add one part to the bytes of a key of several.
pub fn push_part(key: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    key.push(kind as u8);
    key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    key.extend_from_slice(bytes);
}

fn parts<'py>(py: Python<'py>, mut bytes: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = bytes {
        let (own, behind) = rest.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
        found.push(part(
            py,
            if *kind == Kind::Text as u8 {
                Kind::Text
            } else {
                Kind::Integer
            },
            own,
        )?);
        bytes = behind;
    }
    Ok(found)
}

fn part<'py>(py: Python<'py>, kind: Kind, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if kind == Kind::Text {
        return Ok(PyString::from_bytes(py, bytes)?.into_any());
    }
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    Ok(i64::from_le_bytes(word).into_pyobject(py)?.into_any())
}
