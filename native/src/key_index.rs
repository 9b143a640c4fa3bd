//! The keys of one key table: key to id and back. sfm_stream/events/key_table.py holds it.

use std::hash::{BuildHasher, Hasher, RandomState};

use pyo3::exceptions::{PyIndexError, PyKeyError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::buffers::Bytes;
use crate::extract::column;
use crate::keys::{KeySet, object, of_object};

const UNKNOWN: i32 = -1;

/// Implements kernels.KeyIndex. It lives as long as the table, and is changed by what Python calls alone.
///
/// Keys may be chosen by whoever sends events, and must not be able to be made to meet: the hash has a seed that the
/// system gives. It decides where in memory a key stands, and nothing else.
#[pyclass]
pub struct KeyIndex {
    seed: RandomState,
    keys: KeySet,
    /// Ids that are used again, the last one first.
    free: Vec<u32>,
}

impl KeyIndex {
    /// Of the bytes alone: keys of several kinds may share them.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> u32 {
        let mut hasher = self.seed.build_hasher();
        hasher.write(key);
        hasher.finish() as u32
    }

    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    fn id_of_object(&self, key: &Bound<'_, PyAny>, room: &mut Vec<u8>) -> Option<u32> {
        room.clear();
        let kind = of_object(key, room)?;
        self.keys.find(self.hash(room), kind, room)
    }
}

#[pymethods]
impl KeyIndex {
    #[new]
    fn new() -> KeyIndex {
        KeyIndex {
            seed: RandomState::new(),
            keys: KeySet::new(),
            free: Vec::new(),
        }
    }

    fn __len__(&self) -> usize {
        self.keys.held()
    }

    /// Bytes that it holds, room that is not used yet among them.
    fn __sizeof__(&self) -> usize {
        size_of::<KeyIndex>() + self.keys.room() + self.free.capacity() * size_of::<u32>()
    }

    /// The key of an id.
    fn key_of<'py>(&self, py: Python<'py>, key_id: i64) -> PyResult<Bound<'py, PyAny>> {
        let held = u32::try_from(key_id).ok().and_then(|number| self.keys.get(number));
        object(py, held.ok_or_else(|| PyKeyError::new_err(key_id))?)
    }

    /// All keys, in the order of their ids.
    fn keys_in_order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keys.objects(py)
    }

    /// The id of a key, -1 where it is not held or is none.
    fn id_of(&self, key: &Bound<'_, PyAny>) -> i32 {
        self.id_of_object(key, &mut Vec::new())
            .map_or(UNKNOWN, |number| number as i32)
    }

    /// int32: of each key its id, -1 where it is not held or is none.
    fn ids_of<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyByteArray>> {
        let (mut ids, mut room) = (Vec::with_capacity(keys.len()?), Vec::new());
        for key in keys.try_iter()? {
            ids.push(
                self.id_of_object(&key?, &mut room)
                    .map_or(UNKNOWN, |number| number as i32),
            );
        }
        column(py, &ids, i32::to_ne_bytes)
    }

    /// The ids of keys, in their order; each that is not held gets one.
    fn intern(&mut self, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let (mut ids, mut room) = (Vec::with_capacity(keys.len()?), Vec::new());
        for key in keys.try_iter()? {
            room.clear();
            let kind = of_object(&key?, &mut room);
            let kind = kind.filter(|_| u32::try_from(room.len()).is_ok()).ok_or_else(|| {
                PyTypeError::new_err("a key is text, bytes, an integer of 64 bits, or a tuple of these")
            })?;
            let hash = self.hash(&room);
            ids.push(match self.keys.find(hash, kind, &room) {
                Some(known) => known,
                None => {
                    let number = self.free.pop().unwrap_or(self.keys.numbers() as u32);
                    if number >= i32::MAX as u32 {
                        return Err(PyOverflowError::new_err("more keys than there are ids"));
                    }
                    self.keys.put(number, hash, kind, &room);
                    number
                }
            });
        }
        Ok(ids)
    }

    /// Free the ids that are not among these (int32), and the memory of their keys.
    fn retain(&mut self, live: Bytes) -> PyResult<()> {
        let mut marks = vec![false; self.keys.numbers()];
        for word in live.get().as_chunks().0 {
            let place = usize::try_from(i32::from_ne_bytes(*word)).ok();
            let mark = place.and_then(|place| marks.get_mut(place));
            *mark.ok_or_else(|| PyIndexError::new_err("an id that no key has"))? = true;
        }
        let freed = self.keys.retain(&marks);
        self.free.extend(freed);
        let numbers = self.keys.numbers() as u32;
        self.free.retain(|number| *number < numbers);
        if self.free.capacity() > 2 * self.free.len() {
            self.free.shrink_to_fit();
        }
        Ok(())
    }
}
