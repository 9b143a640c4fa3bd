//! Batches of Kafka's message format 2, one behind the other: their headers, and their records one after the other.
//!
//! Checksums have been compared already, by the client or in `fetches`. What a batch means is defined by `read_batch` in
//! sfm_stream/transport/kafka/kafka_python/record_data.py; a batch that is not wholly plain is `None`, and read there.

use crate::codecs::Codecs;

const HEADER: usize = 61;
pub const LOG_APPEND_TIME: u8 = 0x08;
/// What the length of a batch does not count: itself, and what is in front of it.
const OVERHEAD: usize = 12;
/// Stands for a time stamp that there is not, as `types.NO_TIME`.
pub const NO_TIME: i64 = -1;

pub struct Record<'a> {
    pub offset: i64,
    pub arrival_ms: i64,
    pub value: Option<&'a [u8]>,
}

/// The whole batch that `stored` begins with, header and all.
pub fn first_batch(stored: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(int(stored.get(..HEADER)?, 8)).ok()?;
    let batch = stored.get(..length.checked_add(OVERHEAD)?)?;
    (batch.len() >= HEADER).then_some(batch)
}

/// Gives each record of the batches that `stored` consists of to `each`, those of the first one from offset `first` on.
/// `most_bytes`: of the records of a batch, decompressed.
pub fn walk(
    stored: &[u8],
    first: i64,
    most_bytes: usize,
    codecs: &mut Codecs,
    mut each: impl FnMut(Record<'_>),
) -> Option<()> {
    let batch = first_batch(stored)?;
    walk_batch(batch, first, most_bytes, codecs, &mut each)?;
    let mut rest = &stored[batch.len()..];
    while !rest.is_empty() {
        let batch = first_batch(rest)?;
        walk_batch(batch, i64::MIN, most_bytes, codecs, &mut each)?;
        rest = &rest[batch.len()..];
    }
    Some(())
}

fn walk_batch(
    batch: &[u8],
    first: i64,
    most_bytes: usize,
    codecs: &mut Codecs,
    each: &mut impl FnMut(Record<'_>),
) -> Option<()> {
    let header = batch.get(..HEADER)?;
    let (base, attributes) = (long(header, 0), header[22]);
    let (last_delta, first_ms, most_ms) = (int(header, 23), long(header, 27), long(header, 35));
    let count = int(header, 57);
    let data = match attributes & 0x07 {
        0 => &batch[HEADER..],
        codec => codecs.decompress(codec, &batch[HEADER..], most_bytes)?,
    };
    if header[16] != 2 || count < 1 {
        return None;
    }
    let without_gap = i64::from(count) == i64::from(last_delta) + 1;
    base.checked_add(i64::from(count))?;
    let (mut at, mut before) = (0, None);
    for number in 0..i64::from(count) {
        let length = usize::try_from(varint(data, &mut at)?).ok()?;
        let end = at.checked_add(length)?;
        let own = data.get(..end)?;
        at += 1; // attributes, which are not used
        let time_delta = varint(own, &mut at)?;
        let delta = varint(own, &mut at)?;
        field(own, &mut at)?; // the key
        let value = field(own, &mut at)?;
        if at >= end {
            return None; // at least the number of headers follows
        }
        at = end;
        let offset = if without_gap {
            base + number
        } else {
            base.checked_add(delta)?
        };
        if before.is_some_and(|before| before >= offset) {
            return None;
        }
        before = Some(offset);
        if offset >= first {
            let appended = attributes & LOG_APPEND_TIME != 0;
            let arrival_ms = if appended {
                most_ms
            } else {
                first_ms.wrapping_add(time_delta)
            };
            each(Record {
                offset,
                arrival_ms: arrival_ms.max(NO_TIME),
                value,
            });
        }
    }
    (at == data.len()).then_some(())
}

/// The number of records that the headers of the batches give, up to where one is not whole.
pub fn count(stored: &[u8]) -> usize {
    let (mut rest, mut found) = (stored, 0_usize);
    while let Some(batch) = first_batch(rest) {
        found = found.saturating_add(usize::try_from(int(batch, 57)).unwrap_or(0));
        rest = &rest[batch.len()..];
    }
    found
}

/// A zigzag varint of at most 64 bits.
#[inline(always)]
fn varint(data: &[u8], at: &mut usize) -> Option<i64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(*at)?;
        *at += 1;
        if shift == 63 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

/// The bytes behind their length; `None` within for a null, whose length is negative.
#[inline(always)]
fn field<'a>(data: &'a [u8], at: &mut usize) -> Option<Option<&'a [u8]>> {
    let Ok(length) = usize::try_from(varint(data, at)?) else {
        return Some(None);
    };
    let bytes = data.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(Some(bytes))
}

pub fn int(header: &[u8], at: usize) -> i32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    i32::from_be_bytes(bytes)
}

pub fn long(header: &[u8], at: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    i64::from_be_bytes(bytes)
}
