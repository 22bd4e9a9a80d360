//! The machines that the processes of a run are on.

use std::ops::Range;
use tessera_base::Mesh;

/// Which process is on which node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    /// By node, in the order of their first processes.
    pub names: Vec<String>,
    /// By process.
    of: Vec<usize>,
    /// The processes node by node: they get the devices of a mesh in this order, so that neighbours are on one node
    /// however the launcher numbers them.
    order: Vec<usize>,
    /// By process, where it is in that order.
    place: Vec<usize>,
}

impl Nodes {
    /// Nothing is known: all are on one.
    pub fn alone(processes: usize) -> Nodes {
        Nodes::named(&vec![""; processes])
    }

    /// By process, the name of its node.
    pub fn named(all: &[&str]) -> Nodes {
        let mut names: Vec<String> = vec![];
        let number = |name: &&str| match names.iter().position(|n| n == name) {
            Some(node) => node,
            None => {
                names.push((*name).to_owned());
                names.len() - 1
            }
        };
        let of: Vec<usize> = all.iter().map(number).collect();
        let mut order: Vec<usize> = (0..of.len()).collect();
        order.sort_by_key(|&rank| of[rank]);
        let mut place = vec![0; of.len()];
        order.iter().enumerate().for_each(|(at, &rank)| place[rank] = at);
        Nodes { names, of, order, place }
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The node of a process.
    pub fn of(&self, rank: usize) -> usize {
        self.of.get(rank).copied().unwrap_or(0)
    }

    /// The name of the node of a process, as it stands in messages.
    pub fn quoted(&self, rank: usize) -> String {
        self.names.get(self.of(rank)).map_or_else(String::new, |name| format!("`{name}`"))
    }

    /// Where a process is in the order in which devices are dealt; one behind the last for one that is not there.
    pub fn place(&self, rank: usize) -> usize {
        self.place.get(rank).copied().unwrap_or(self.place.len())
    }

    /// The process at a place of that order.
    pub fn at_place(&self, place: usize) -> usize {
        self.order.get(place).copied().unwrap_or(0)
    }

    /// The places of the processes of a node.
    fn places(&self, node: usize) -> Range<usize> {
        let place = |n: usize| self.order.partition_point(|&rank| self.of[rank] < n);
        place(node)..place(node + 1)
    }

    /// The processes of a node.
    pub fn processes(&self, node: usize) -> &[usize] {
        self.order.get(self.places(node)).unwrap_or(&[])
    }

    /// Which processes are where, in words.
    pub fn describe(&self) -> String {
        let node = |(i, name): (usize, &String)| {
            let who: Vec<String> = self.processes(i).iter().map(usize::to_string).collect();
            format!("`{name}` has {} {}", if who.len() == 1 { "process" } else { "processes" }, who.join(", "))
        };
        self.names.iter().enumerate().map(node).collect::<Vec<_>>().join("; ")
    }
}

/// How many devices a mesh has.
pub fn count(mesh: &Mesh) -> usize {
    mesh.axes.iter().map(|a| a.1 as usize).product()
}

/// Of each axis of a mesh, whether neighbours along it are on different nodes, which `node` tells of a device.
pub fn crossing(mesh: &Mesh, node: impl Fn(u64) -> usize) -> Vec<bool> {
    let nodes: Vec<usize> = (0..count(mesh) as u64).map(node).collect();
    let mut step = count(mesh);
    let axis = |(_, size): &(String, u64)| {
        let round = step;
        step /= (*size).max(1) as usize;
        let inside = |d: &usize| d % round.max(1) + step < round;
        (0..nodes.len()).filter(inside).any(|d| nodes[d] != nodes[d + step])
    };
    mesh.axes.iter().map(axis).collect()
}

/// The axes that should change places: one that lies across nodes, and one inside of them along which fewer bytes move.
pub fn chatty(mesh: &Mesh, bytes: &[u64], crosses: &[bool]) -> Option<(usize, usize)> {
    let several = |axis: &(usize, _)| mesh.axes.get(axis.0).is_some_and(|a| a.1 > 1);
    let axes = || bytes.iter().zip(crosses).enumerate().filter(several);
    let far = axes().filter(|(_, (_, crosses))| **crosses).max_by_key(|(_, (bytes, _))| **bytes)?;
    let near = axes().filter(|(_, (_, crosses))| !**crosses).min_by_key(|(_, (bytes, _))| **bytes)?;
    (far.1.0 > near.1.0).then_some((far.0, near.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_dealt_node_by_node() {
        let nodes = Nodes::named(&["a", "b", "a", "c", "b"]);
        assert_eq!((nodes.count(), nodes.processes(1), nodes.of(3)), (3, &[1, 4][..], 2));
        let order: Vec<usize> = (0..5).map(|p| nodes.at_place(p)).collect();
        assert_eq!(order, [0, 2, 1, 4, 3]);
        assert!((0..5).all(|rank| nodes.at_place(nodes.place(rank)) == rank));
        assert_eq!(nodes.describe(), "`a` has processes 0, 2; `b` has processes 1, 4; `c` has process 3");
    }

    #[test]
    fn axes_cross_nodes_and_the_chatty_one_is_found() {
        let mesh = Mesh { axes: vec![("dp".into(), 2), ("pp".into(), 1), ("tp".into(), 4)] };
        assert_eq!(crossing(&mesh, |d| d as usize / 4), [true, false, false]);
        assert_eq!(crossing(&mesh, |d| d as usize / 2), [true, false, true]);
        assert_eq!(crossing(&mesh, |_| 0), [false, false, false]);
        assert_eq!(chatty(&mesh, &[10, 0, 5], &[true, false, false]), Some((0, 2)));
        assert_eq!(chatty(&mesh, &[10, 0, 20], &[true, false, false]), None);
        assert_eq!(chatty(&mesh, &[10, 0, 2], &[true, false, true]), None);
    }
}
