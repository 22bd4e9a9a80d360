//! Descriptions of machines: a device, and tiers of links from the nearest devices outwards.

use crate::products::Products;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Steps of an efficiency: from the first number on (GFLOP of work or MB of memory), the second.
pub type Steps = Vec<(f64, f64)>;

/// One kind of device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub memory_bytes: u64,
    /// Peak of its memory.
    pub memory_gbs: f64,
    /// Peak of products by element type.
    pub tflops: BTreeMap<String, f64>,
    /// Peak of elementwise work.
    pub vector_tflops: f64,
    /// Of products whose sizes are not known one by one.
    pub product_efficiency: Steps,
    /// Rates of products by their sizes, measured with their traffic.
    #[serde(default)]
    pub products: Option<Products>,
    pub vector_efficiency: Steps,
    pub memory_efficiency: Steps,
    /// Share of the peak that attention in one kernel reaches, from so many keys on.
    pub attention_forward: Steps,
    pub attention_backward: Steps,
    /// Share of a device that communication takes from work beside it.
    pub busy: f64,
    /// Share of an exchange that shows where it goes along with the product that needs it, from so many devices on.
    pub left: Steps,
    /// Microseconds that every elementwise kernel takes at least.
    #[serde(default)]
    pub kernel_us: f64,
}

/// Latency and bandwidth for messages up to a size. Below `from` bytes the latency grows from the
/// one of the band before it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    #[serde(default)]
    pub from: u64,
    #[serde(default = "unbounded")]
    pub upto: u64,
    pub us: f64,
    /// What every device after the first adds to the latency.
    #[serde(default)]
    pub hop_us: f64,
    /// Of the bytes that one link has to carry (the usual "bus" bandwidth).
    pub gbs: f64,
}

impl Band {
    /// Microseconds among `n` devices.
    pub fn latency(&self, n: u64) -> f64 {
        self.us + self.hop_us * n.saturating_sub(1) as f64
    }
}

fn unbounded() -> u64 {
    u64::MAX
}

fn whole() -> Steps {
    vec![(0.0, 1.0)]
}

/// The number of the first step that a size reaches.
pub fn at(steps: &Steps, size: f64) -> f64 {
    steps.iter().find(|s| size >= s.0).map_or(1.0, |s| s.1)
}

/// Devices that reach each other in the same way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    pub name: String,
    /// How many devices it joins.
    pub devices: u64,
    /// Share of the bandwidth that a group has, from so many devices on.
    #[serde(default = "whole")]
    pub groups: Steps,
    pub all_reduce: Vec<Band>,
    pub all_gather: Vec<Band>,
    pub reduce_scatter: Vec<Band>,
    pub all_to_all: Vec<Band>,
    /// From one device to another.
    pub point: Vec<Band>,
}

/// A machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    pub name: String,
    /// Where the numbers come from.
    pub sources: Vec<String>,
    pub device: Device,
    pub tiers: Vec<Tier>,
}

/// The machines that come along, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("a100", include_str!("../topologies/a100.json")),
    ("dgx-h100", include_str!("../topologies/dgx-h100.json")),
    ("nvl72", include_str!("../topologies/nvl72.json")),
];

/// Names of the machines that come along.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|s| s.0).collect()
}

impl Topology {
    /// A machine that comes along.
    pub fn named(name: &str) -> Option<Topology> {
        let text = SHIPPED.iter().find(|s| s.0 == name)?.1;
        Topology::parse(text).ok()
    }

    /// A machine from the text of a file.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let topology: Topology = serde_json::from_str(text).map_err(|e| e.to_string())?;
        topology.check()?;
        Ok(topology)
    }

    /// What would make predictions meaningless.
    fn check(&self) -> Result<(), String> {
        let d = &self.device;
        let positive = |what: &str, x: f64| match x.is_finite() && x > 0.0 {
            true => Ok(()),
            false => Err(format!("{what} is {x}; it must be above 0")),
        };
        positive("memory_gbs", d.memory_gbs)?;
        positive("vector_tflops", d.vector_tflops)?;
        if !(0.0..1.0).contains(&d.busy) {
            return Err(format!("busy is {}; it must be from 0 to below 1", d.busy));
        }
        if !(0.0..1e6).contains(&d.kernel_us) {
            return Err(format!("kernel_us is {}; it must be from 0 to below 1e6", d.kernel_us));
        }
        d.tflops.iter().try_for_each(|(name, x)| positive(&format!("tflops.{name}"), *x))?;
        if !d.tflops.contains_key("bf16") {
            return Err("tflops has no `bf16`".into());
        }
        let groups = self.tiers.iter().map(|t| ("groups", &t.groups));
        let efficiencies = [
            ("product_efficiency", &d.product_efficiency),
            ("vector_efficiency", &d.vector_efficiency),
            ("memory_efficiency", &d.memory_efficiency),
            ("attention_forward", &d.attention_forward),
            ("attention_backward", &d.attention_backward),
            ("left", &d.left),
        ];
        for (what, steps) in efficiencies.into_iter().chain(groups) {
            if steps.last().is_none_or(|s| s.0 != 0.0) || !steps.is_sorted_by(|a, b| a.0 > b.0) {
                return Err(format!("{what} must fall from the largest size to one from 0 on"));
            }
            steps.iter().try_for_each(|s| positive(what, s.1))?;
        }
        if let Some(products) = &d.products {
            products.check()?;
        }
        if self.tiers.is_empty() || !self.tiers.is_sorted_by(|a, b| a.devices < b.devices) {
            return Err("tiers must join more devices from one to the next, and there must be one".into());
        }
        for t in &self.tiers {
            for bands in [&t.all_reduce, &t.all_gather, &t.reduce_scatter, &t.all_to_all, &t.point] {
                if bands.last().is_none_or(|b| b.upto != u64::MAX) || !bands.is_sorted_by(|a, b| a.upto < b.upto) {
                    return Err(format!("the bands of `{}` must rise, and the last one must have no `upto`", t.name));
                }
                bands.iter().try_for_each(|b| positive("gbs", b.gbs))?;
            }
        }
        Ok(())
    }

    /// How many devices it has at most.
    pub fn devices(&self) -> u64 {
        self.tiers.last().map_or(1, |t| t.devices)
    }

    /// The devices of the nearest tier.
    pub fn node(&self) -> u64 {
        self.tiers.first().map_or(1, |t| t.devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_come_along_are_right() {
        for (name, text) in SHIPPED {
            let t = Topology::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(t.name, *name);
        }
    }

    #[test]
    fn wrong_machines_are_refused() {
        let text = SHIPPED[0].1;
        for (from, to, says) in [
            ("\"bf16\": 312", "\"bf17\": 312", "no `bf16`"),
            ("\"vector_tflops\": 78", "\"vector_tflops\": 0", "above 0"),
            ("\"devices\": 8,", "\"devices\": 80000,", "tiers"),
            ("[0, 0.3]", "[2, 0.3]", "memory_efficiency"),
            ("[[0, 0.55]]", "[[1, 0.55]]", "attention_forward"),
            ("\"name\"", "\"nom\"", "unknown field"),
        ] {
            let wrong = Topology::parse(&text.replacen(from, to, 1));
            assert!(wrong.as_ref().is_err_and(|e| e.contains(says)), "{wrong:?}");
        }
    }
}
