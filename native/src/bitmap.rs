//! Cells as the packed bitmap of a sketch.

use crate::buffers::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `nbytes` bytes in which the bits of these cells are set, the lowest first. cells: native u32.
#[pyfunction]
pub fn bitmap<'py>(py: Python<'py>, cells: Bytes, nbytes: usize) -> PyResult<Bound<'py, PyBytes>> {
    let (cells, rest) = cells.get().as_chunks::<4>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("cells are numbers of four bytes"));
    }
    PyBytes::new_with(py, nbytes, |bits| {
        for cell in cells.iter().map(|cell| u32::from_ne_bytes(*cell)) {
            let byte = bits
                .get_mut(cell as usize / 8)
                .ok_or_else(|| PyValueError::new_err("no such cell"))?;
            *byte |= 1 << (cell % 8);
        }
        Ok(())
    })
}
