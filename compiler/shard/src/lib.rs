//! Tensors over the devices of a mesh.
//!
//! One table says how the dims of a primitive's operands and result belong together
//! ([`links`]). The checker derives the layout of every operator's result from it ([`propagate_sharding`]):
//! strictly, and over the operator's own expansion, so that an operator has no rule of its own.
//! Before a graph runs, every node gets the layout that it really has ([`layout`]), and each
//! device a graph of its own, in which what is said to be elsewhere arrives by an exchange
//! ([`spmd_partition`], [`exchange`]). Operators that read other positions of a split dim than those of their
//! result get just these ([`reach`], [`placement`]).
//!
//! Sums are folded in the order that a single device keeps, by whoever has their terms ([`partial_products`],
//! [`blockwise_reduce`]): results have the same bits on any mesh. A type that says `sum@tp` says what may be done with a
//! value, not that devices hold summands.

pub mod unflatten_columns;
pub mod links;
mod own_states;
pub mod propagate_sharding;
pub mod placement;
pub mod layout;
mod adder;
mod tree;
mod blockwise_reduce;
mod demand;
pub mod partial_products;
pub mod parts_first;
pub mod blockwise_topk;
pub mod exchange;
pub mod split_leaves;
pub mod spmd_partition;
pub mod device_classes;
