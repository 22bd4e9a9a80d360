//! Derivatives of Graph IR, source to source: the derivative of a graph is more graph.
//!
//! [`pullback`] is reverse mode. It walks from the outputs back and adds, for every node on the
//! way, the nodes that turn the cotangent of its result into those of its operands (Griewank and
//! Walther, Evaluating Derivatives, 2008, chapter 3). Cotangents of a value with several readers
//! are summed from the last reader to the first, so the order does not depend on anything but
//! the graph. A zero cotangent is no node. [`pushforward`] is the pullback of the pullback,
//! which is linear in its cotangents (Radul and others, You Only Linearize Once, 2023, the other
//! way round), so one table of rules serves both modes and every order.
//!
//! [`batched`] is a graph for many values at once, with what it states about its derivatives;
//! [`on_devices`] the same for the devices along an axis of a mesh, which do things together.
//!
//! The rules: `tessera_ops::map` for elementwise functions, the row of each primitive (`tessera_ir::prim`), and what operators say about themselves
//! ([`tessera_ops::surface::Build::derive`]).

mod copies;
mod rows;
mod kept;
mod batch;
mod reverse;
mod forward;

pub use batch::{batched, on_devices};
pub use forward::pushforward;
pub use reverse::{Blocked, pullback};
pub use tessera_ir::writer::Writer;
