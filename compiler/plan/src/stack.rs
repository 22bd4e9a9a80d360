//! What a run is made with, whichever way it is divided: kernels, libraries, what goes along with what, and whose
//! program it is.

use crate::attention::Attention;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Which exchanges go along with work that does not wait for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    None,
    /// Those of gradients: between replicas along with the backward part, of divided matrices beside the gradients of weights.
    Backward,
    /// Those of divided matrices along with the products that need or make them and those between stages too.
    All,
}

/// Whose program exchanges what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sends {
    /// What `std.parallel` sends: sums of whole activations, borders of stages in full, gradients and parameters in four bytes.
    Tessera,
    /// What Megatron-LM sends: activations divided between products, borders of stages in parts, parameters in two bytes.
    Megatron,
}

/// What a run is made with.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stack {
    pub sends: Sends,
    /// The newest kernel of the machine that the libraries' year has, unless given.
    pub attention: Option<Attention>,
    /// Whether neighbouring elementwise operators are one kernel.
    pub fused: bool,
    /// Whether the loss is one kernel, and not a kernel for each of its steps.
    pub fused_loss: bool,
    pub overlap: Overlap,
    /// The year of the libraries; the newest that the machine knows unless given.
    pub libraries: Option<u64>,
    /// Standard deviation of the time of nodes that do the same, as a share of it; the machine's unless given.
    pub spread: Option<f64>,
}

impl Stack {
    /// What a program has today.
    pub fn of(sends: Sends) -> Stack {
        let overlap = match sends {
            Sends::Tessera => Overlap::Backward,
            Sends::Megatron => Overlap::All,
        };
        Stack { sends, attention: None, fused: true, fused_loss: true, overlap, libraries: None, spread: None }
    }

    /// The attention of this stack on a machine.
    pub fn attention(&self, topology: &Topology) -> Attention {
        self.attention.unwrap_or_else(|| topology.device.newest_attention(self.libraries))
    }

    /// The same with the machine's own numbers where none are given.
    pub fn on(&self, topology: &Topology) -> Stack {
        let spread = self.spread.or(Some(topology.device.spread));
        Stack { attention: Some(self.attention(topology)), spread, ..*self }
    }

    /// The machine as a run finds it: with libraries of its year, and its elementwise operators fused or not.
    pub fn running<'t>(&self, topology: &'t Topology) -> Cow<'t, Topology> {
        let old = self.libraries.and_then(|y| topology.device.libraries.iter().find(|l| y <= l.until));
        let eager = if self.fused { 1.0 } else { topology.device.eager };
        match old.is_none() && eager == 1.0 {
            true => Cow::Borrowed(topology),
            false => Cow::Owned(Topology { device: topology.device.slower(old, eager), ..topology.clone() }),
        }
    }

    /// What cannot be, on any machine or on this one.
    pub fn check(&self, topology: &Topology) -> Result<(), String> {
        let device = &topology.device;
        if let Some(year) = self.libraries.filter(|y| !YEARS.contains(y)) {
            let (first, last) = (YEARS.start(), YEARS.end());
            return Err(format!("libraries is {year}; it must be a year from {first} to {last}"));
        }
        if let Some(spread) = self.spread.filter(|s| !(0.0..=SPREAD_MAX).contains(s)) {
            return Err(format!("spread is {spread}; it must be from 0 to {SPREAD_MAX}"));
        }
        match self.attention {
            Some(a) if a != Attention::Unfused && !device.attention.contains_key(&a) => {
                let known: Vec<&str> = device.attention.keys().map(|a| a.name()).collect();
                let (name, known) = (a.name(), known.join(", "));
                Err(format!("`{}` has no attention `{name}`; it has unfused, {known}", topology.name))
            }
            _ => Ok(()),
        }
    }
}

/// Years of libraries that can be asked for.
const YEARS: std::ops::RangeInclusive<u64> = 2017..=2100;

/// Nodes that differ by more are broken.
const SPREAD_MAX: f64 = 0.5;

/// How many times as long as a node of the mean the slowest of `nodes` takes, where their times have this standard
/// deviation. The largest of n normal numbers is expected at most √(2 ln n) deviations above the mean.
pub fn slowest(nodes: f64, spread: f64) -> f64 {
    1.0 + spread * (2.0 * nodes.max(1.0).ln()).sqrt()
}
