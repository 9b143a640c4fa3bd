//! Bytes of Python objects, read in place.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes of an object that Python code cannot change while they are read.
///
/// An argument of a function: `bytes`, or a read-only contiguous view of one, such as an array of `np.frombuffer`.
/// What can be written through is refused, as Rust relies on bytes that stay as they are. A read-only view may be of
/// memory that has another owner, who could write to it: a function with such an argument holds the lock of Python all
/// the time, so that no owner runs.
pub struct Bytes(PyBuffer<u8>);

impl Bytes {
    #[allow(unsafe_code)]
    pub fn get(&self) -> &[u8] {
        // Safe: the buffer is held for as long as the slice lives, is contiguous, and is read-only.
        match self.0.len_bytes() {
            0 => &[],
            length => unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), length) },
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(&object)?;
        if !buffer.is_c_contiguous() || !buffer.readonly() {
            return Err(PyValueError::new_err(
                "bytes are wanted, or a contiguous read-only view of some",
            ));
        }
        Ok(Self(buffer))
    }
}
