//! Distinct counting keys by number, as bytes.

use std::hint::black_box;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// No key: numbers are below i32::MAX.
const EMPTY: u64 = u64::MAX;
const FEWEST_SLOTS: usize = 64;
/// So many keys at most are brought near together.
pub const BLOCK: usize = 64;

/// What the bytes of a key mean.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// One text: its UTF-8, in which a lone surrogate of Python has three bytes.
    Text,
    /// One integer: eight bytes.
    Integer,
    /// One part that is bytes.
    Bytes,
    /// Any other number of parts: of each its kind, its length (four bytes) and its bytes.
    Parts,
}

/// Where the bytes of a key are. `kind`: None where no key has the number.
struct Entry {
    start: usize,
    size: u32,
    kind: Option<Kind>,
}

/// Keys with their numbers. Whoever gives numbers and hashes must do so for all keys alike.
pub struct KeySet {
    /// Of each key its hash and, in the lower half, its number: at the place that the hash says, or the next free one.
    slots: Vec<u64>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    held: usize,
    dead_bytes: usize,
}

impl KeySet {
    pub fn new() -> KeySet {
        KeySet {
            slots: vec![EMPTY; FEWEST_SLOTS],
            entries: Vec::new(),
            bytes: Vec::new(),
            held: 0,
            dead_bytes: 0,
        }
    }

    /// How many keys there are.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Above the largest number of a key.
    pub fn numbers(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that are allocated.
    pub fn room(&self) -> usize {
        let (slots, entries) = (self.slots.capacity(), self.entries.capacity());
        slots * size_of::<u64>() + entries * size_of::<Entry>() + self.bytes.capacity()
    }

    #[inline(always)]
    pub fn find(&self, hash: u32, kind: Kind, key: &[u8]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            if (slot >> 32) as u32 == hash && self.get(slot as u32) == Some((kind, key)) {
                return Some(slot as u32);
            }
            at = (at + 1) & mask;
        }
    }

    /// Read what `find` will read first for each of these hashes, at most BLOCK of them. Of a large set all of it is in
    /// no cache; the reads of one key have to wait for each other, but those of many do not.
    #[inline(always)]
    pub fn bring_near(&self, hashes: impl ExactSizeIterator<Item = u32>) {
        let (count, mask) = (hashes.len(), self.slots.len() - 1);
        let (mut numbers, mut starts) = ([0u32; BLOCK], [0usize; BLOCK]);
        for (number, hash) in numbers.iter_mut().zip(hashes) {
            *number = self.slots[hash as usize & mask] as u32;
        }
        for (start, number) in starts.iter_mut().zip(&numbers[..count]) {
            *start = self.entries.get(*number as usize).map_or(0, |entry| entry.start);
        }
        let read = |start: &usize| u32::from(self.bytes.get(*start).copied().unwrap_or(0));
        black_box(starts[..count].iter().map(read).sum::<u32>());
    }

    /// Add a key that is not there. `number`: one that no key has, at most `numbers()`.
    pub fn put(&mut self, number: u32, hash: u32, kind: Kind, key: &[u8]) {
        if (self.held + 1) * 4 > self.slots.len() * 3 {
            self.slots = placed(self.slots.len() * 2, self.slots.iter().copied());
        }
        let entry = Entry {
            start: self.bytes.len(),
            size: key.len() as u32,
            kind: Some(kind),
        };
        self.bytes.extend_from_slice(key);
        if number as usize == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[number as usize] = entry;
        }
        place(&mut self.slots, u64::from(hash) << 32 | u64::from(number));
        self.held += 1;
    }

    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<(Kind, &[u8])> {
        let entry = self.entries.get(number as usize)?;
        Some((entry.kind?, &self.bytes[entry.start..][..entry.size as usize]))
    }

    /// All keys as Python holds them, in the order of their numbers.
    pub fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let held = (0..self.numbers() as u32).filter_map(|number| self.get(number));
        let keys: PyResult<Vec<_>> = held.map(|key| object(py, key)).collect();
        PyList::new(py, keys?)
    }

    /// Keep the keys whose number is marked, and give back the memory of the others. Their numbers, ascending.
    pub fn retain(&mut self, live: &[bool]) -> Vec<u32> {
        let mut freed = Vec::new();
        for (number, entry) in self.entries.iter_mut().enumerate() {
            if entry.kind.is_some() && !live[number] {
                entry.kind = None;
                self.dead_bytes += entry.size as usize;
                freed.push(number as u32);
            }
        }
        if freed.is_empty() {
            return freed;
        }
        self.held -= freed.len();
        let entries = &self.entries;
        let left = self.slots.iter().copied().filter(|slot| {
            let entry = entries.get(*slot as u32 as usize);
            entry.is_some_and(|entry| entry.kind.is_some())
        });
        let room = (self.held * 4 / 3 + 1).next_power_of_two().max(FEWEST_SLOTS);
        self.slots = placed(room, left);
        while self.entries.last().is_some_and(|entry| entry.kind.is_none()) {
            self.entries.pop();
        }
        if self.entries.capacity() > 2 * self.entries.len() {
            self.entries.shrink_to_fit();
        }
        if self.dead_bytes * 2 > self.bytes.len() {
            self.close_up();
        }
        freed
    }

    /// Leave out the bytes of keys that are gone.
    fn close_up(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.dead_bytes);
        for entry in self.entries.iter_mut().filter(|entry| entry.kind.is_some()) {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[entry.start..][..entry.size as usize]);
            entry.start = start;
        }
        self.bytes = bytes;
        self.dead_bytes = 0;
    }
}

/// Slots with these keys. `room`: a power of two, above the number of keys.
fn placed(room: usize, keys: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut slots = vec![EMPTY; room];
    for slot in keys.filter(|slot| *slot != EMPTY) {
        place(&mut slots, slot);
    }
    slots
}

fn place(slots: &mut [u64], slot: u64) {
    let mask = slots.len() - 1;
    let mut at = (slot >> 32) as usize & mask;
    while slots[at] != EMPTY {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

/// Put the bytes of a key of Python behind those in `room`; its kind, or None where it is no key.
pub fn of_object(key: &Bound<'_, PyAny>, room: &mut Vec<u8>) -> Option<Kind> {
    let Ok(parts) = key.cast::<PyTuple>() else {
        return of_part(key, room);
    };
    let mut own = Vec::new();
    for part in parts {
        own.clear();
        let kind = of_part(&part, &mut own)?;
        push_part(room, kind, &own);
    }
    Some(Kind::Parts)
}

fn of_part(part: &Bound<'_, PyAny>, room: &mut Vec<u8>) -> Option<Kind> {
    if let Ok(text) = part.cast::<PyString>() {
        match text.to_str() {
            Ok(utf8) => room.extend_from_slice(utf8.as_bytes()),
            Err(_) => {
                let encoded = text.call_method1("encode", ("utf-8", "surrogatepass")).ok()?;
                room.extend_from_slice(encoded.cast::<PyBytes>().ok()?.as_bytes());
            }
        }
        return Some(Kind::Text);
    }
    if let Ok(bytes) = part.cast::<PyBytes>() {
        room.extend_from_slice(bytes.as_bytes());
        return Some(Kind::Bytes);
    }
    room.extend_from_slice(&part.extract::<i64>().ok()?.to_le_bytes());
    Some(Kind::Integer)
}

/// Add one part to the bytes of a key of several.
pub fn push_part(key: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    key.push(kind as u8);
    key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    key.extend_from_slice(bytes);
}

/// A key as Python holds it.
pub fn object<'py>(py: Python<'py>, (kind, bytes): (Kind, &[u8])) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        Kind::Text => match PyString::from_bytes(py, bytes) {
            Ok(text) => Ok(text.into_any()),
            Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogatepass")),
        },
        Kind::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
        Kind::Integer => {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            Ok(i64::from_le_bytes(word).into_pyobject(py)?.into_any())
        }
        Kind::Parts => Ok(PyTuple::new(py, parts(py, bytes)?)?.into_any()),
    }
}

fn parts<'py>(py: Python<'py>, mut bytes: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = bytes {
        let (own, behind) = rest.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
        let kinds = [Kind::Text, Kind::Integer, Kind::Bytes];
        found.push(object(py, (kinds[*kind as usize], own))?);
        bytes = behind;
    }
    Ok(found)
}
