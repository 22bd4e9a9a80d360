//! What compiled code and the runtime share: the functions of the runtime that host code
//! calls, the layout of the context, the kernel signature and the plan of a graph.
//! No dependencies.

pub mod chains;
pub mod check;
mod cores;
pub mod layout;
pub mod leaves;
pub mod linalg;
mod matrix_unit;
pub mod rt;
pub mod plan;
pub mod slice;

pub use cores::cores;
pub use matrix_unit::{has_matrix_unit, matrix_unit};
