//! Everything that runs beneath compiled code: values, tensors, the thread pool, plans, files.

pub mod tensor;
pub mod digits;
pub mod tensor_print;
pub mod fault;
pub mod io;
pub mod tensor_index;
pub mod pool;
pub mod execute;
