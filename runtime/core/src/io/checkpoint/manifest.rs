//! What the file of a checkpoint says of the parts beside it: a text in its header.

use crate::mesh::Box;
use crate::tensor::{Tensor, bytes_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_base::DType;

/// The name of the text.
pub const KEY: &str = "tessera.parts";

/// The files of parts, and which blocks of which tensors they hold.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// By process of the run that wrote them; the name of a file says what it holds ([`super::part`]).
    pub files: Vec<String>,
    pub tensors: BTreeMap<String, Blocks>,
}

/// A tensor in blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Blocks {
    dtype: String,
    pub shape: Vec<u64>,
    pub blocks: Vec<Block>,
}

/// A block, and the number of the file that holds it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Block {
    pub file: usize,
    start: Vec<u64>,
    size: Vec<u64>,
}

impl Manifest {
    /// The manifest of tensors that lie in parts, without the names of files, and what each of `processes` has to write.
    /// Of the processes that hold a block the one writes it that has the least to write so far.
    ///
    /// `owner` gives the process of a device of a mesh of so many.
    pub fn share_out<'a>(
        tensors: impl Iterator<Item = (&'a String, &'a Tensor)>,
        processes: usize,
        owner: impl Fn(usize, usize) -> usize,
    ) -> Manifest {
        let mut load = vec![0u64; processes];
        let mut out = Manifest::default();
        for (name, t) in tensors {
            let mut blocks = vec![];
            for (held, devices) in t.blocks() {
                let count = t.devices();
                let least = devices.iter().map(|&d| owner(d, count)).min_by_key(|&p| (load.get(p).copied(), p));
                let file = least.unwrap_or(0);
                let bytes = bytes_of(t.dtype, &held.size).unwrap_or(u64::MAX);
                load.get_mut(file).into_iter().for_each(|sum| *sum = sum.saturating_add(bytes));
                blocks.push(Block { file, start: held.start, size: held.size });
            }
            let tensor = Blocks { dtype: t.dtype.name().into(), shape: t.shape.clone(), blocks };
            out.tensors.insert(name.clone(), tensor);
        }
        out
    }
}

impl Blocks {
    pub fn dtype(&self) -> Option<DType> {
        DType::parse(&self.dtype)
    }
}

impl Block {
    pub fn place(&self) -> Box {
        Box { start: self.start.clone(), size: self.size.clone() }
    }

    /// What the file calls the block of a tensor: `w@0,128`.
    pub fn name(&self, tensor: &str) -> String {
        let start: Vec<String> = self.start.iter().map(u64::to_string).collect();
        format!("{tensor}@{}", start.join(","))
    }
}
