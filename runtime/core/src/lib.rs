//! Everything that runs beneath compiled code: values, tensors, the thread pool, plans, files.

pub mod tensor;
pub mod fault;
pub mod digits;
pub mod number;
pub mod value;
pub mod case;
pub mod passed;
pub mod context;
pub mod format;
pub mod tensor_print;
pub mod show;
pub mod dict;
pub mod pool;
pub mod execute;
pub mod io;
pub mod math;
pub mod order;
pub mod slice;
pub mod list;
pub mod native;
pub mod tensor_index;
pub mod nested;
pub mod rt_tensor;
pub mod text;
pub mod rt;
pub mod rt_files;
