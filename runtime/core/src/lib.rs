//! Everything that runs beneath compiled code: values, tensors, the thread pool, plans, files.

pub mod case;
pub mod context;
pub mod dict;
pub mod digits;
pub mod execute;
pub mod fault;
pub mod format;
pub mod io;
pub mod list;
pub mod math;
pub mod native;
pub mod nested;
pub mod number;
pub mod order;
pub mod passed;
pub mod pool;
pub mod rt;
pub mod rt_files;
pub mod rt_tensor;
pub mod show;
pub mod slice;
pub mod tensor;
pub mod tensor_index;
pub mod tensor_print;
pub mod text;
pub mod value;
