//! What every other crate speaks of: places in source text, element types, sizes,
//! shardings and diagnostics. Data and pure functions only.

pub mod bug;
pub mod amounts;
pub mod stack;
pub mod block_quant;
pub mod span;
pub mod dtype;
pub mod size;
pub mod shard;
pub mod tensor_type;
pub mod quote;
pub mod near;
pub mod diag;
pub mod codes;
pub mod own;
pub mod operator;
pub mod limits;

pub use block_quant::Blocks;
pub use codes::Code;
pub use diag::{Diagnostic, Edit, Fix, Label, Severity};
pub use dtype::DType;
pub use limits::Limits;
pub use near::nearest;
pub use operator::{BinOp, CmpOp};
pub use own::Own;
pub use shard::{Mesh, Monoid, Sharding, block};
pub use size::{Facts, Reach, Size, SizeVar, Verdict};
pub use span::{FileId, ItemId, Span};
pub use tensor_type::TensorType;
