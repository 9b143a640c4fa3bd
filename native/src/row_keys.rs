//! The keys of the rows of one call: the ids of those that are known, and the others once each.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::key_index::KeyIndex;
use crate::keys::{BLOCK, KeySet, Kind};

/// A row whose key is not looked up yet. Its bytes wait up to `end`, from the end of the one before.
struct Waiting {
    row: u32,
    hash: u32,
    kind: Kind,
    end: usize,
}

pub struct RowKeys<'a> {
    index: &'a KeyIndex,
    /// Of each row the id of its key; of one that the index does not hold -1 - its number in `new`; -1 of an odd row.
    ids: Vec<i32>,
    /// Keys are looked up by the block, as `KeySet::bring_near` says.
    waiting: Vec<Waiting>,
    waiting_bytes: Vec<u8>,
    /// What the index does not hold, in the order of rows.
    new: KeySet,
    first_rows: Vec<i32>,
}

impl<'a> RowKeys<'a> {
    pub fn new(index: &'a KeyIndex, ahead: usize) -> RowKeys<'a> {
        RowKeys {
            index,
            ids: Vec::with_capacity(ahead),
            waiting: Vec::with_capacity(BLOCK),
            waiting_bytes: Vec::new(),
            new: KeySet::new(),
            first_rows: Vec::new(),
        }
    }

    /// The number of the next row.
    pub fn next_row(&self) -> usize {
        self.ids.len()
    }

    /// A row with this key.
    #[inline(always)]
    pub fn push(&mut self, kind: Kind, key: &[u8]) {
        self.waiting_bytes.extend_from_slice(key);
        self.waiting.push(Waiting {
            row: self.ids.len() as u32,
            hash: self.index.hash(key),
            kind,
            end: self.waiting_bytes.len(),
        });
        self.ids.push(0);
        if self.waiting.len() == BLOCK {
            self.look_up();
        }
    }

    /// A row whose key is for Python to read.
    pub fn push_odd(&mut self) {
        self.ids.push(-1);
    }

    /// Look up what waits. At the end too: only then is the column complete.
    pub fn look_up(&mut self) {
        let held = self.index.keys();
        held.bring_near(self.waiting.iter().map(|row| row.hash));
        let mut start = 0;
        for Waiting { row, hash, kind, end } in self.waiting.drain(..) {
            let key = &self.waiting_bytes[start..end];
            start = end;
            self.ids[row as usize] = match held.find(hash, kind, key) {
                Some(id) => id as i32,
                None => {
                    let number = self.new.find(hash, kind, key).unwrap_or_else(|| {
                        let number = self.new.numbers() as u32;
                        self.new.put(number, hash, kind, key);
                        self.first_rows.push(row as i32);
                        number
                    });
                    -1 - number as i32
                }
            };
        }
        self.waiting_bytes.clear();
    }

    pub fn ids(&self) -> &[i32] {
        &self.ids
    }

    /// The row in which each new key occurs first, ascending.
    pub fn first_rows(&self) -> &[i32] {
        &self.first_rows
    }

    /// The new keys as Python holds them.
    pub fn new_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.new.objects(py)
    }
}
