//! The operator table: what exists, its types, its meaning, its cost.
//!
//! Two tables of tensor code. [`map`] holds the elementwise functions as small scalar programs
//! ([`scalar`]) that the interpreter and the code generator both run, so that they give the
//! same bits. [`surface`] holds the operators that programs call (`op.softmax`), each with
//! its parameters, its typing rule over symbolic sizes and its expansion into primitives
//! ([`prim`]), which are the nodes of Graph IR. A third, [`numbers`], holds the operations of host numbers.

pub mod scalar;
pub mod map;
pub mod scalar_eval;
pub mod prim;
pub mod convert;
pub mod elementary;
pub mod fft;
pub mod reference;
pub mod numbers;
pub mod surface;
