//! The cheapest set of values that separates what is there from what is wanted: a minimum cut.
//!
//! Values are nodes with a capacity, the bytes that keeping them takes. Every path from a source to the
//! wanted value passes one that is kept; among equal cuts the one nearest to the wanted value is taken, since
//! then the least is computed.

use std::collections::{BTreeSet, VecDeque};

/// More than all bytes there are.
const ENDLESS: u64 = u64::MAX / 4;

/// An edge with what can still flow through it; edge `i ^ 1` is its reverse.
struct Edge {
    to: usize,
    room: u64,
}

/// A network of values. Each is two vertices, in and out, with an edge of its capacity between them.
pub struct Network {
    edges: Vec<Edge>,
    /// Edges by the vertex that they leave.
    leaving: Vec<Vec<usize>>,
    count: usize,
}

impl Network {
    /// `bytes`: what keeping each value takes.
    pub fn new(bytes: &[u64]) -> Network {
        let count = bytes.len();
        let mut n = Network { edges: vec![], leaving: vec![vec![]; 2 * count + 1], count };
        for (v, &b) in bytes.iter().enumerate() {
            n.edge(2 * v, 2 * v + 1, b.min(ENDLESS));
        }
        n
    }

    fn edge(&mut self, from: usize, to: usize, room: u64) {
        self.leaving[from].push(self.edges.len());
        self.edges.push(Edge { to, room });
        self.leaving[to].push(self.edges.len());
        self.edges.push(Edge { to: from, room: 0 });
    }

    /// `reader` is computed from `operand`.
    pub fn reads(&mut self, reader: usize, operand: usize) {
        self.edge(2 * operand + 1, 2 * reader, ENDLESS);
    }

    /// The value is there, or cannot be computed again.
    pub fn source(&mut self, value: usize) {
        self.edge(2 * self.count, 2 * value, ENDLESS);
    }

    /// What is kept so that `wanted` can be computed, ascending.
    pub fn cut(mut self, wanted: usize) -> Vec<usize> {
        let sink = 2 * wanted;
        while let Some(path) = self.path(sink) {
            let room = path.iter().map(|&e| self.edges[e].room).min().unwrap_or(0);
            for e in path {
                self.edges[e].room -= room;
                self.edges[e ^ 1].room += room;
            }
        }
        // What still reaches the wanted value lies behind the cut.
        let mut behind = BTreeSet::from([sink]);
        let mut todo = vec![sink];
        while let Some(at) = todo.pop() {
            for &e in &self.leaving[at] {
                let from = self.edges[e].to;
                if self.edges[e ^ 1].room > 0 && behind.insert(from) {
                    todo.push(from);
                }
            }
        }
        (0..self.count).filter(|v| behind.contains(&(2 * v + 1)) && !behind.contains(&(2 * v))).collect()
    }

    /// A shortest way on which more can flow, as edges from its end.
    fn path(&self, sink: usize) -> Option<Vec<usize>> {
        let start = 2 * self.count;
        let mut by: Vec<Option<usize>> = vec![None; self.leaving.len()];
        let mut todo = VecDeque::from([start]);
        while let Some(at) = todo.pop_front() {
            for &e in &self.leaving[at] {
                let to = self.edges[e].to;
                if self.edges[e].room > 0 && to != start && by[to].is_none() {
                    by[to] = Some(e);
                    todo.push_back(to);
                }
            }
        }
        let mut path = vec![];
        let mut at = sink;
        while at != start {
            let e = by[at]?;
            path.push(e);
            at = self.edges[e ^ 1].to;
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_is_kept() {
        // 0 -> 1 -> 3 and 2 -> 3; 1 is smaller than 0.
        let mut n = Network::new(&[100, 10, 50, 100]);
        n.source(0);
        n.source(2);
        n.reads(1, 0);
        n.reads(3, 1);
        n.reads(3, 2);
        assert_eq!(n.cut(3), [1, 2]);
    }

    #[test]
    fn one_value_serves_two_readers_and_the_nearest_of_equals_is_kept() {
        // 0 -> 1 -> (2, 3) -> 4.
        let mut n = Network::new(&[10, 10, 8, 8, 100]);
        n.source(0);
        for (reader, operand) in [(1, 0), (2, 1), (3, 1), (4, 2), (4, 3)] {
            n.reads(reader, operand);
        }
        assert_eq!(n.cut(4), [1]);
    }

    #[test]
    fn what_needs_nothing_keeps_nothing() {
        assert!(Network::new(&[5, 5]).cut(1).is_empty());
    }
}
