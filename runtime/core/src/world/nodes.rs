//! The machines that the processes of a run are on.

use super::{World, launch};
use crate::fault::Fault;
use std::ops::Range;
use tessera_base::Mesh;

/// Which process is on which node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    /// By node, in the order of their first processes.
    names: Vec<String>,
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

/// Of each axis of a mesh, whether neighbours along it are on different nodes, which `node` tells of a device.
pub fn crossing(mesh: &Mesh, node: impl Fn(u64) -> usize) -> Vec<bool> {
    let nodes: Vec<usize> = (0..mesh.devices()).map(node).collect();
    let mut step = mesh.devices() as usize;
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

impl World {
    /// Finds out which process is on which node: the first one hears of each, and tells all.
    pub(super) fn meet(&self) -> Result<Nodes, Fault> {
        let own = launch::node().replace(['\n', '`'], " ").into_bytes();
        let came = self.all_to_first(own)?;
        let names: Vec<String> = came.iter().map(|b| String::from_utf8_lossy(b).into_owned()).collect();
        let text = names.join("\n").into_bytes();
        let len = self.from_first((text.len() as u64).to_le_bytes().to_vec())?;
        let len = len.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let text = self.from_first(if self.rank() == 0 { text } else { vec![0; len as usize] })?;
        let text = String::from_utf8_lossy(&text);
        let names: Vec<&str> = text.split('\n').collect();
        Ok(if names.len() == self.size() { Nodes::named(&names) } else { Nodes::alone(self.size()) })
    }

    /// The devices of a mesh that are on a node.
    pub fn devices_on(&self, node: usize, devices: usize) -> Range<usize> {
        let all = self.nodes().processes(node);
        let of = |rank: Option<&usize>| rank.map_or(0..0, |&r| self.devices_of(r, devices));
        of(all.first()).start..of(all.last()).end
    }

    /// Of each axis of a mesh, whether it lies across nodes.
    pub fn crossing(&self, mesh: &Mesh) -> Vec<bool> {
        crossing(mesh, |d| self.node_of(d as usize, mesh.devices() as usize))
    }

    /// How a mesh lies on the nodes, in words.
    pub fn describe(&self, mesh: &Mesh) -> String {
        let devices = mesh.devices() as usize;
        let node = |(i, name): (usize, &String)| {
            let own = self.devices_on(i, devices);
            let which = match own.len() {
                0 => "no device".to_owned(),
                1 => format!("device {}", own.start),
                _ => format!("devices {} to {}", own.start, own.end - 1),
            };
            format!("{which} on `{name}`")
        };
        let nodes: Vec<String> = self.nodes().names.iter().enumerate().map(node).collect();
        let crosses = self.crossing(mesh);
        let which = |far: bool| {
            let axes = mesh.axes.iter().zip(&crosses).filter(|(a, c)| a.1 > 1 && **c == far);
            let names: Vec<String> = axes.map(|(a, _)| format!("`{}`", a.0)).collect();
            if names.is_empty() { "no axis".to_owned() } else { names.join(", ") }
        };
        format!("{mesh}: {}; across nodes: {}; inside: {}", nodes.join(", "), which(true), which(false))
    }

    /// Notes that a mesh is used; whether that is new.
    pub fn note_mesh(&self, mesh: &Mesh) -> bool {
        let mut along = self.along();
        let new = !along.contains_key(mesh);
        if new {
            along.insert(mesh.clone(), vec![0; mesh.axes.len()]);
        }
        new
    }

    /// Notes the bytes that this process's devices sent along each axis of a mesh.
    pub fn moved(&self, mesh: &Mesh, bytes: &[u64]) {
        let mut along = self.along();
        let sums = along.entry(mesh.clone()).or_insert_with(|| vec![0; mesh.axes.len()]);
        sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
    }

    /// Of the meshes that were used, the bytes that all devices sent along each axis, in the first process; none in the
    /// others. All come to it.
    pub fn moved_in_all(&self) -> Result<Vec<(Mesh, Vec<u64>)>, Fault> {
        // Host code is the same in all, and so are the meshes.
        let own: Vec<(Mesh, Vec<u64>)> = self.along().iter().map(|(m, b)| (m.clone(), b.clone())).collect();
        let bytes: Vec<u8> = own.iter().flat_map(|(_, sums)| sums).flat_map(|n| n.to_le_bytes()).collect();
        let mut all = vec![];
        let came = self.to_first(bytes)?;
        let mut at = 0;
        for (mesh, sums) in own.into_iter().filter(|_| !came.is_empty()) {
            let word = |bytes: &Vec<u8>, i: usize| {
                let word = bytes.get(8 * i..).and_then(|rest| rest.first_chunk());
                word.map_or(0, |b| u64::from_le_bytes(*b))
            };
            let sum = |i: usize| came.iter().map(|bytes| word(bytes, i)).fold(0u64, u64::saturating_add);
            let sums: Vec<u64> = (at..at + sums.len()).map(sum).collect();
            at += sums.len();
            all.push((mesh, sums));
        }
        Ok(all)
    }
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
