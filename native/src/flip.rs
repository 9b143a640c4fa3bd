//! The comparison of coins' digits with a threshold's, as `sfm_stream/sketch/bernoulli.py` has it.
//!
//! Python draws the digits, and more of them where they tie: no coin is made here. Integers alone are compared.

use crate::buffers::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wide::u8x64;

/// Digits that are compared at once.
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
    let wanted = u8x64::splat(wanted);
    let whole = groups.iter().map(|group| (group, u64::MAX));
    for (number, (group, used)) in whole.chain([(&last, (1 << rest.len()) - 1)]).enumerate() {
        let group = u8x64::new(*group);
        let below = group.simd_lt(wanted).to_bitmask();
        packed.extend_from_slice(&(below & used).to_le_bytes());
        let mut left = group.simd_eq(wanted).to_bitmask() & used;
        while left != 0 {
            tied.push((number * GROUP) as u32 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    packed.truncate(digits.len().div_ceil(8));
    (PyBytes::new(py, &packed), bytes_of(py, &tied))
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
