//! Everything that runs beneath compiled code: values, tensors, the thread pool, plans, files.

pub mod tensor;
