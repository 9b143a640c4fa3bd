//! Plain batches of a fetch, as many as follow each other. What is not plain is left to Python, errors and all.
//!
//! The same walk in Python is `plain_batches` in sfm_stream/transport/kafka/kafka_python/batch_runs.py.

use pyo3::prelude::*;

use crate::buffers::Bytes;
use crate::records::{LOG_APPEND_TIME, first_batch, int, long};

const CHECKED_FROM: usize = 21;
const CODEC: u8 = 0x07;
const CONTROL: u8 = 0x20;

/// (where they end, batches, records, the offset behind them, leader epoch of the last), as `sfm_stream/kernels.py` says.
#[pyfunction]
pub fn plain_batches(
    fetched: Bytes,
    at: usize,
    next_offset: u64,
    appended: bool,
    most_bytes: usize,
    most_records: usize,
    check_crcs: bool,
) -> Option<(usize, usize, usize, u64, i32)> {
    let wanted = if appended { LOG_APPEND_TIME } else { 0 };
    let fetched = fetched.get();
    let stop = at.saturating_add(most_bytes).min(fetched.len());
    let (mut at, mut batches, mut records, mut next_offset, mut leader_epoch) = (at, 0, 0, next_offset, 0);
    while let Some(batch) = fetched.get(at..stop).and_then(first_batch) {
        let plain = batch[16] == 2 && batch[22] & (CODEC | LOG_APPEND_TIME | CONTROL) == wanted;
        let base = u64::try_from(long(batch, 0));
        let last_delta = u64::try_from(int(batch, 23));
        let count = usize::try_from(int(batch, 57));
        let (true, Ok(base), Ok(last_delta), Ok(count)) = (plain, base, last_delta, count) else {
            break;
        };
        if base < next_offset || count == 0 || count > most_records - records {
            break;
        }
        if check_crcs && crc32c::crc32c(&batch[CHECKED_FROM..]) != int(batch, 17) as u32 {
            break;
        }
        (batches, records) = (batches + 1, records + count);
        (next_offset, leader_epoch) = (base + last_delta + 1, int(batch, 12));
        at += batch.len();
    }
    (batches > 0).then_some((at, batches, records, next_offset, leader_epoch))
}
