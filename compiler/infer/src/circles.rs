//! What calls itself, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

/// The nodes of a graph that lie on circles: Tarjan's search, in time that grows with nodes and edges alone. Edges to what is
/// no node are left out. Goes down by recursion, as deep as the longest path.
pub fn on_circles<N: Ord + Copy>(edges: &BTreeMap<N, Vec<N>>) -> BTreeSet<N> {
    let mut search = Search { edges, places: BTreeMap::new(), open: vec![], found: BTreeSet::new() };
    for node in edges.keys() {
        if !search.places.contains_key(node) {
            search.visit(*node);
        }
    }
    search.found
}

struct Search<'a, N> {
    edges: &'a BTreeMap<N, Vec<N>>,
    /// When a node was met; `None` once its circle is closed.
    places: BTreeMap<N, Option<usize>>,
    open: Vec<N>,
    found: BTreeSet<N>,
}

impl<N: Ord + Copy> Search<'_, N> {
    /// The earliest open node that is reached.
    fn visit(&mut self, node: N) -> usize {
        let own = self.places.len();
        self.places.insert(node, Some(own));
        self.open.push(node);
        let mut low = own;
        let callees = self.edges.get(&node).map_or(&[][..], Vec::as_slice);
        for callee in callees.iter().filter(|c| self.edges.contains_key(c)) {
            match self.places.get(callee) {
                Some(Some(place)) => low = low.min(*place),
                Some(None) => {}
                None => low = low.min(self.visit(*callee)),
            }
        }
        if low == own {
            let start = self.open.iter().rposition(|n| *n == node).unwrap_or(0);
            let circle = self.open.split_off(start);
            if circle.len() > 1 || callees.contains(&node) {
                self.found.extend(&circle);
            }
            for member in circle {
                self.places.insert(member, None);
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_one_and_of_several_are_found() {
        let edges = BTreeMap::from([
            (0, vec![1, 2]),
            (1, vec![1]),
            (2, vec![3, 9]),
            (3, vec![4]),
            (4, vec![2, 5]),
            (5, vec![6, 6]),
            (6, vec![]),
        ]);
        assert_eq!(on_circles(&edges), BTreeSet::from([1, 2, 3, 4]));
    }
}
