//! The comparison of coins' digits with a threshold's, as `sfm_stream/sketch/bernoulli.py` has it.
//!
//! Python draws the digits, and more of them where they tie: no coin is made here. Integers alone are compared.

use crate::buffers::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const GROUP: usize = 64;

/// Packed bits of coins, the lowest first, and the positions of those that tie, as native u32.
type Coins<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Coins whose first digits these are: `digit < wanted` decides, unless both are equal.
#[pyfunction]
pub fn compare<'py>(py: Python<'py>, digits: Bytes, wanted: u8) -> Coins<'py> {
    let digits = digits.get();
    let (groups, rest) = digits.as_chunks::<GROUP>();
    let mut last = [0; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    let mut packed = Vec::with_capacity(digits.len() / 8 + GROUP);
    let mut tied = Vec::with_capacity(digits.len() / 128 + GROUP);
    let whole = groups.iter().map(|group| (group, u64::MAX));
    for (number, (group, used)) in whole.chain([(&last, (1 << rest.len()) - 1)]).enumerate() {
        let (below, equal) = compare_group(group, wanted);
        packed.extend_from_slice(&(below & used).to_le_bytes());
        let mut left = equal & used;
        while left != 0 {
            tied.push((number * GROUP) as u32 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    packed.truncate(digits.len().div_ceil(8));
    (PyBytes::new(py, &packed), bytes_of(py, &tied))
}

/// Bit i of the first: whether digit i is below `wanted`; of the second: whether it is equal.
#[inline]
fn compare_group(group: &[u8; GROUP], wanted: u8) -> (u64, u64) {
    let (mut below, mut equal) = ([0; GROUP], [0; GROUP]);
    for at in 0..GROUP {
        below[at] = u8::from(group[at] < wanted);
    }
    for at in 0..GROUP {
        equal[at] = u8::from(group[at] == wanted);
    }
    let any = equal
        .as_chunks()
        .0
        .iter()
        .fold(0, |any, eight| any | u64::from_le_bytes(*eight));
    (pack(&below), if any == 0 { 0 } else { pack(&equal) })
}

/// Bit i is byte i, each of which is 0 or 1.
#[inline]
fn pack(ones: &[u8; GROUP]) -> u64 {
    // Each factor moves one of eight bytes to a bit of its own in the highest byte.
    let packed = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    ones.as_chunks()
        .0
        .iter()
        .rev()
        .fold(0, |bits, eight| bits << 8 | packed(eight))
}

/// The coins with one more digit for each that ties: those whose digit is below `wanted` are set.
#[pyfunction]
pub fn settle<'py>(py: Python<'py>, packed: &[u8], tied: &[u8], digits: Bytes, wanted: u8) -> PyResult<Coins<'py>> {
    let (digits, (positions, rest)) = (digits.get(), tied.as_chunks::<4>());
    if positions.len() != digits.len() || !rest.is_empty() {
        return Err(PyValueError::new_err("one digit is wanted for each tied coin"));
    }
    let (mut packed, mut still) = (packed.to_vec(), Vec::new());
    for (at, digit) in positions.iter().map(|at| u32::from_ne_bytes(*at)).zip(digits) {
        if *digit < wanted {
            let byte = packed
                .get_mut(at as usize / 8)
                .ok_or_else(|| PyValueError::new_err("no such coin"))?;
            *byte |= 1 << (at % 8);
        } else if *digit == wanted {
            still.push(at);
        }
    }
    Ok((PyBytes::new(py, &packed), bytes_of(py, &still)))
}

fn bytes_of<'py>(py: Python<'py>, positions: &[u32]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = positions.iter().flat_map(|at| at.to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}
