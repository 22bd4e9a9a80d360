//! Everything that runs beneath compiled code: values, tensors, the thread pool, plans, files.

pub mod tensor;
pub mod digits;
pub mod tensor_print;
pub mod fault;
pub mod io;
pub mod tensor_index;
pub mod pool;
pub mod execute;
pub mod native;
pub mod number;
pub mod format;
pub mod slice;
pub mod value;
pub mod text;
pub mod case;
pub mod math;
pub mod passed;
pub mod context;
pub mod show;
pub mod order;
pub mod list;
pub mod dict;
pub mod rt;
pub mod nested;
pub mod rt_files;
pub mod rt_tensor;
