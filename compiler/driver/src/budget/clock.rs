//! How long kernels and exchanges take, as it is predicted.

use crate::backend::footprint::Work;
use crate::roof::Roof;
use tessera_base::DType;
use tessera_plan::collective::Collective;
use tessera_plan::roofline;
use tessera_plan::topology::Topology;

/// What times are predicted for.
pub enum Clock<'a> {
    /// This machine, by what was measured of it. Devices of a mesh share it.
    Here(Roof),
    /// A machine that is described.
    Planned(&'a Topology),
}

impl Clock<'_> {
    /// Seconds of one run of a group.
    pub fn kernel(&self, work: &Work) -> f64 {
        let (flops, bytes) = (work.flops as f64, work.bytes as f64);
        match self {
            Clock::Here(roof) => (flops / roof.flops).max(bytes / roof.bytes),
            Clock::Planned(topology) => seconds(topology, work),
        }
    }

    /// Seconds in which a device moves so many bytes to or from devices of its node, and others.
    pub fn exchange(&self, name: &str, near: u64, far: u64) -> f64 {
        match self {
            // Read once and written once.
            Clock::Here(roof) => 2.0 * (near + far) as f64 / roof.bytes,
            Clock::Planned(topology) => topology.direct(collective(name), near as f64, far as f64),
        }
    }

    /// Whether all devices compute on one machine, one after the other.
    pub fn is_shared(&self) -> bool {
        matches!(self, Clock::Here(_))
    }

    /// Devices of one node.
    pub fn node(&self) -> u64 {
        match self {
            Clock::Here(_) => u64::MAX,
            Clock::Planned(topology) => topology.node().max(1),
        }
    }

    /// What it is the clock of, in words.
    pub fn of(&self) -> String {
        match self {
            Clock::Here(roof) => {
                let (flops, bytes) = (roof.flops / 1e9, roof.bytes / 1e9);
                format!("this machine, which was measured at {flops:.0} GFLOP/s and {bytes:.1} GB/s")
            }
            Clock::Planned(topology) => format!("`{}` ({})", topology.name, topology.device.name),
        }
    }
}

/// The collective whose links an exchange takes.
pub fn collective(name: &str) -> Collective {
    if name.starts_with("all_gather") { Collective::AllGather } else { Collective::AllToAll }
}

/// The time of a group by the roofline of a machine.
pub fn seconds(topology: &Topology, work: &Work) -> f64 {
    let (flops, bytes) = (work.flops as f64, work.bytes as f64);
    let (product_flops, vector_flops) = if work.product.is_some() { (flops, 0.0) } else { (0.0, flops) };
    let dtype = match work.product {
        Some(DType::F8E4M3 | DType::F8E5M2) => "fp8".into(),
        Some(d) => d.to_string(),
        None => "f32".into(),
    };
    topology.device.time(&roofline::Work { product_flops, vector_flops, bytes }, &dtype)
}
