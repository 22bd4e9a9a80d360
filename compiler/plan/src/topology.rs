//! Descriptions of machines: a device, and tiers of links from the nearest devices outwards.

use crate::attention::Attention;
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
    /// Kernels of attention.
    pub attention: BTreeMap<Attention, Rates>,
    /// Older libraries, from the oldest on. Every other number is of the newest.
    #[serde(default)]
    pub libraries: Vec<Libraries>,
    /// Standard deviation of the time of nodes that do the same, as a share of it.
    #[serde(default)]
    pub spread: f64,
    /// Share of a device that communication takes from work beside it.
    pub busy: f64,
    /// Share of an exchange that shows where it goes along with the product that needs it, from so many devices on.
    pub left: Steps,
    /// Share of the rate of elementwise kernels that operators reach one by one, as PyTorch runs them without a compiler.
    #[serde(default = "one")]
    pub eager: f64,
    /// Microseconds that every elementwise kernel takes at least.
    #[serde(default)]
    pub kernel_us: f64,
}

/// How fast one kernel of attention is: shares of the peak from so many keys on, operations under the mask.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// The first year whose libraries have it.
    pub since: u64,
    pub forward: Steps,
    pub backward: Steps,
}

/// Libraries of a time: rates as shares of those of the newest.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Libraries {
    /// The last year that they stand for.
    pub until: u64,
    pub products: f64,
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

fn one() -> f64 {
    1.0
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

impl Device {
    /// The newest kernel of attention that libraries of a year have; the oldest where they have none.
    pub fn newest_attention(&self, year: Option<u64>) -> Attention {
        let known = self.attention.iter().filter(|(_, r)| year.is_none_or(|y| r.since <= y));
        let newest = known.max_by_key(|(a, r)| (r.since, **a)).map(|(a, _)| *a);
        newest.or(self.attention.keys().next().copied()).unwrap_or(Attention::Unfused)
    }

    /// The device with older libraries, or with operators that are not fused.
    pub fn slower(&self, old: Option<&Libraries>, eager: f64) -> Device {
        let mut out = self.clone();
        out.memory_efficiency.iter_mut().for_each(|s| s.1 *= eager);
        let Some(old) = old else { return out };
        if let Some(table) = &mut out.products {
            table.tflops.iter_mut().flatten().flatten().for_each(|rate| *rate *= old.products);
        }
        out.product_efficiency.iter_mut().for_each(|s| s.1 *= old.products);
        out
    }
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
        positive("eager", d.eager)?;
        if !(0.0..1.0).contains(&d.busy) {
            return Err(format!("busy is {}; it must be from 0 to below 1", d.busy));
        }
        if !(0.0..1e6).contains(&d.kernel_us) {
            return Err(format!("kernel_us is {}; it must be from 0 to below 1e6", d.kernel_us));
        }
        if !(0.0..=0.5).contains(&d.spread) {
            return Err(format!("spread is {}; it must be from 0 to 0.5", d.spread));
        }
        if d.attention.is_empty() || d.attention.contains_key(&Attention::Unfused) {
            return Err("attention must have one kernel or more, and `unfused` is none".into());
        }
        for old in &d.libraries {
            positive("libraries.products", old.products)?;
        }
        if !d.libraries.is_sorted_by(|a, b| a.until < b.until) {
            return Err("libraries must rise by `until`".into());
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
            ("left", &d.left),
        ];
        let attention =
            d.attention.values().flat_map(|r| [("attention.forward", &r.forward), ("attention.backward", &r.backward)]);
        for (what, steps) in efficiencies.into_iter().chain(attention).chain(groups) {
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
            ("\"memory_efficiency\": [[0,", "\"memory_efficiency\": [[2,", "memory_efficiency"),
            ("[0, 0.256]]", "[1, 0.256]]", "attention.forward"),
            ("\"flash-2\"", "\"flush-2\"", "unknown variant"),
            ("\"eager\"", "\"libraries\": [{ \"until\": 2022, \"products\": 0 }], \"eager\"", "libraries.products"),
            ("\"spread\": 0.", "\"spread\": 7.", "spread"),
            ("\"name\"", "\"nom\"", "unknown field"),
        ] {
            let wrong = Topology::parse(&text.replacen(from, to, 1));
            assert!(wrong.as_ref().is_err_and(|e| e.contains(says)), "{wrong:?}");
        }
    }
}
