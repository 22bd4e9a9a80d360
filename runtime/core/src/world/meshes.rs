//! How the meshes of a run lie on the nodes, and what moves along their axes.

use super::nodes::{Nodes, count, crossing};
use super::{World, launch};
use crate::fault::Fault;
use std::ops::Range;
use tessera_base::Mesh;

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
        crossing(mesh, |d| self.node_of(d as usize, count(mesh)))
    }

    /// How a mesh lies on the nodes, in words.
    pub fn describe(&self, mesh: &Mesh) -> String {
        let devices = count(mesh);
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
