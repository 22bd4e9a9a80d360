//! Host IR to machine code in memory, through Cranelift.
//!
//! Conventions of the code that comes out:
//! - A function takes the context, the closure object (0 for a plain function) and its
//!   parameters; it owns the words it is given and gives an owned word back.
//! - After a failure `status` of the context is set. Whoever calls something that can fail looks
//!   at it, releases what it holds and returns 0.
//! - Locals of counted types live in stack slots and are released where the function ends;
//!   values in flight are released on the way out of a failure ([`frame`]).

mod link;
mod unit;
mod frame;
mod vars;
mod arith;
mod borrow;
mod call;
mod expr;
mod lvalue;
mod stmt;
mod loops;
mod session;

pub use link::{HostError, Link};
pub use session::{Loaded, Session};
pub use unit::{Compiled, compile};
