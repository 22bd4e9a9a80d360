//! Rewrite rules: named, directional, each with its class. One file a topic.

pub mod arithmetic;
pub mod fast;
pub mod views;

use tessera_ir::graph::{Graph, Node, NodeId};

/// What a rule does to the bits of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Same bits for every input.
    Exact,
    /// Another order of additions; only under the policy `fast`.
    Reassociates,
    /// Another rounding; only under the policy `fast`.
    Approximates,
}

/// What a node becomes.
pub enum Rewrite {
    /// A node that exists.
    Value(NodeId),
    /// A new node with existing operands.
    Node(Node),
    /// New nodes, the last of which takes its place; an operand [`NEW`]` + i` is the `i`-th.
    Nodes(Vec<Node>),
}

/// The first of the numbers that stand for the nodes of [`Rewrite::Nodes`].
pub const NEW: u32 = 1 << 31;

/// One rule. It sees the new graph (operands are rewritten already) and one node.
pub struct Rule {
    /// `outer_inner`: what the pattern is made of.
    pub name: &'static str,
    pub doc: &'static str,
    pub class: Class,
    pub apply: fn(&Graph, &Node) -> Option<Rewrite>,
}

/// Every rule, in the order of trial.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    views::RULES.iter().chain(arithmetic::RULES).chain(fast::RULES)
}
