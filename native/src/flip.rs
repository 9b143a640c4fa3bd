//! The comparison of coins' digits with a threshold's, of which `privacy/flip.py` makes a flip.

use crate::buffers::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Packed bits, the lowest first, of `digit < wanted` for each digit, and where they are equal, as native u32.
#[pyfunction]
pub fn compare<'py>(
    py: Python<'py>,
    digits: Bytes,
    wanted: u8,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let digits = digits.get();
    let mut below = vec![0u8; digits.len().div_ceil(8)];
    let mut tied: Vec<u8> = Vec::new();
    for (at, &digit) in digits.iter().enumerate() {
        below[at / 8] |= u8::from(digit < wanted) << (at % 8);
        if digit == wanted {
            tied.extend_from_slice(&(at as u32).to_ne_bytes());
        }
    }
    Ok((PyBytes::new(py, &below), PyBytes::new(py, &tied)))
}
