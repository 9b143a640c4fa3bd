//! Compiled kernels for sfm-stream: what Python computes as well, with the same results.
//!
//! Of what a function is given it keeps nothing. `KeyIndex` alone holds something between calls: the open keys of the
//! key table that has made it, which adds and frees them; and the seed of their hash, the one thing for which entropy is
//! taken. Buffers of Python are read through `buffers`, the one file with unsafe code. Results leave as bytes, whose
//! meaning `sfm_stream/kernels.py` says.

use pyo3::prelude::*;

mod bitmap;
mod buffers;
mod codecs;
mod extract;
mod fetches;
mod fields;
mod flip;
mod json;
mod key_index;
mod keys;
mod records;
mod row_keys;
mod times;

#[pymodule]
fn sfm_stream_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<extract::PlainRecords>()?;
    module.add_class::<key_index::KeyIndex>()?;
    module.add_function(wrap_pyfunction!(bitmap::bitmap, module)?)?;
    module.add_function(wrap_pyfunction!(fetches::plain_batches, module)?)?;
    module.add_function(wrap_pyfunction!(flip::compare, module)?)?;
    module.add_function(wrap_pyfunction!(flip::settle, module)?)?;
    Ok(())
}
