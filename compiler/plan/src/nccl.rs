//! Which algorithm and protocol NCCL takes, by the constants of its own cost model (version 2.30.7,
//! `src/graph/tuning.cc`): the smallest of `latency + bytes / bandwidth`. For machines whose nodes are
//! joined by NVLink; CollNet and PAT are left out.

use crate::collective::Collective;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Algorithm {
    Tree,
    Ring,
    Nvls,
    NvlsTree,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    LL,
    LL128,
    Simple,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chip {
    Hopper,
    Blackwell,
}

/// A group of devices as NCCL sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ranks {
    pub chip: Chip,
    pub nodes: u64,
    pub per_node: u64,
    pub channels: u64,
    /// GB/s of all channels together.
    pub bandwidth: f64,
    /// Whether switches add up (and it is not turned off).
    pub nvls: bool,
    /// Whether the hosts' processors are AMD's.
    pub amd: bool,
}

const ALGORITHMS: [Algorithm; 4] = [Algorithm::Tree, Algorithm::Ring, Algorithm::Nvls, Algorithm::NvlsTree];
const PROTOCOLS: [Protocol; 3] = [Protocol::LL, Protocol::LL128, Protocol::Simple];

/// Base latency in µs by protocol.
const BASE_TREE: [f64; 3] = [6.8, 14.0, 8.4];
const BASE_RING: [f64; 3] = [6.6, 14.0, 8.4];
/// Latency of a hop in µs by protocol: over NVLink, over the network.
const HOP_TREE: [[f64; 3]; 2] = [[0.6, 1.25, 4.0], [5.0, 8.5, 14.0]];
const HOP_RING: [[f64; 3]; 2] = [[0.6, 1.9, 3.4], [2.7, 4.0, 14.0]];
const HOP_NVLS: [f64; 2] = [25.0, 18.0];
const HOP_NVLS_TREE: [f64; 2] = [25.0, 20.9];

/// Corrections of the tree's bandwidth for sizes of 64 bytes times powers of two.
const TREE: [[f64; 24]; 3] = [
    [1., 1., 1., 1., 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1., 1., 1., 1., 1.],
    [1., 1., 1., 1., 1., 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1., 1., 1.],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9,
        0.9, 0.9,
    ],
];

impl Ranks {
    fn n(&self) -> f64 {
        (self.nodes * self.per_node) as f64
    }

    fn is_blackwell(&self) -> bool {
        self.chip == Chip::Blackwell
    }

    /// A limit per channel at one, two and more nodes.
    fn per_channel(&self, hopper: [f64; 3], blackwell: [f64; 3]) -> f64 {
        let of = if self.is_blackwell() { blackwell } else { hopper };
        of[(self.nodes.clamp(1, 3) - 1) as usize] * self.channels as f64
    }

    /// What LL reaches at most.
    fn low_latency_limit(&self) -> f64 {
        let several = |two: f64, more: f64| if self.nodes == 2 { two } else { more };
        match (self.nodes, self.amd) {
            (0 | 1, _) => {
                if self.is_blackwell() {
                    282.0
                } else {
                    141.0
                }
            }
            (_, true) => several(22.5, 19.0),
            (_, false) => several(39.0, 20.4),
        }
    }

    fn latency(&self, what: Collective, algorithm: Algorithm, protocol: Protocol) -> f64 {
        let (p, nodes, n) = (protocol as usize, self.nodes as f64, self.n());
        let apart = self.nodes > 1;
        match algorithm {
            Algorithm::Ring => {
                let passes = if what == Collective::AllReduce { 2.0 } else { 1.0 };
                let (steps, far) = (passes * (n - 1.0), passes * (nodes - 1.0));
                // Between nodes a hop waits for the host at least.
                let host = if self.amd { 2.0 } else { 1.0 } * if protocol == Protocol::Simple { 3.0 } else { 1.0 };
                let near = if apart { HOP_RING[0][p].max(host) } else { HOP_RING[0][p] };
                BASE_RING[p] + (steps - far) * near + far * HOP_RING[1][p]
            }
            Algorithm::Tree => {
                let inside = (self.per_node as f64 - 1.0) * HOP_TREE[0][p];
                BASE_TREE[p] + 2.0 * (inside + nodes.log2() * HOP_TREE[1][p])
            }
            Algorithm::Nvls => HOP_NVLS[0] + if apart { HOP_NVLS[1] } else { 0.0 },
            Algorithm::NvlsTree => HOP_NVLS_TREE[0] + 2.0 * nodes.log2() * HOP_NVLS_TREE[1],
        }
    }

    /// Bandwidth of the algorithm in GB/s; `None` where it is not offered.
    fn bandwidth(&self, what: Collective, algorithm: Algorithm, protocol: Protocol) -> Option<f64> {
        let (bw, n, channels) = (self.bandwidth, self.n(), self.channels as f64);
        let reduces = what == Collective::AllReduce;
        let efficiency = if self.is_blackwell() { 0.74 } else { 0.85 };
        let bus = match (algorithm, protocol) {
            (Algorithm::Ring, Protocol::LL) => (bw * 0.5).min(self.low_latency_limit()),
            (Algorithm::Ring, Protocol::LL128) => (bw * 0.92).min(self.per_channel([36.7; 3], [40.0; 3])),
            (Algorithm::Ring, Protocol::Simple) => bw,
            (Algorithm::Tree, _) if !reduces => return None,
            (Algorithm::Tree, protocol) => {
                let plain = (bw * 0.92).min(self.per_channel([38.7, 41.4, 36.0], [70.0, 42.8, 24.0]));
                match protocol {
                    Protocol::LL => (plain / 3.8).min(self.low_latency_limit()),
                    Protocol::LL128 => {
                        let share = if self.nodes == 1 { 7.0 / 9.0 } else { 0.94 };
                        (plain * share).min(self.per_channel([36.7, 36.7, 29.0], [55.6, 31.7, 20.0]))
                    }
                    Protocol::Simple => plain * 0.85,
                }
            }
            (Algorithm::Nvls, Protocol::Simple) if self.nvls => {
                let share = if reduces { 2.0 } else { (self.per_node as f64 - 1.0) / self.per_node as f64 };
                bw * efficiency * (channels - 1.0) / channels * share
            }
            (Algorithm::NvlsTree, Protocol::Simple) if self.nvls && reduces && self.nodes > 1 => {
                bw.min(self.per_channel([57.7, 57.7, 45.5], [96.0, 96.0, 80.0]))
            }
            _ => return None,
        };
        Some(match (algorithm, reduces) {
            (Algorithm::Tree | Algorithm::NvlsTree, _) => bus * 0.5,
            (_, true) => bus * n / (2.0 * (n - 1.0)),
            (_, false) => bus * n / (n - 1.0),
        })
    }

    /// Microseconds of a collective of `bytes`, or `None` where this way is not offered.
    pub fn time(&self, what: Collective, algorithm: Algorithm, protocol: Protocol, bytes: u64) -> Option<f64> {
        let mut bandwidth = self.bandwidth(what, algorithm, protocol)?;
        let mut latency = self.latency(what, algorithm, protocol);
        if algorithm == Algorithm::Tree {
            let step = (bytes >> 6).max(1).ilog2() as usize;
            bandwidth *= TREE[protocol as usize].get(step).copied().unwrap_or(1.0);
        }
        let large = bytes as f64 / (self.channels as f64 * self.n()) >= 64.0;
        let plateau = protocol == Protocol::Simple && algorithm == Algorithm::Ring && what == Collective::AllReduce;
        if plateau && self.nodes > 1 && large {
            latency *= 1.4;
        }
        Some(latency + bytes as f64 / (1000.0 * bandwidth))
    }

    /// What NCCL takes, with the time in µs.
    pub fn choice(&self, what: Collective, bytes: u64) -> Option<(Algorithm, Protocol, f64)> {
        let ways = ALGORITHMS.iter().flat_map(|&a| PROTOCOLS.iter().map(move |&p| (a, p)));
        ways.filter_map(|(a, p)| Some((a, p, self.time(what, a, p, bytes)?))).min_by(|x, y| x.2.total_cmp(&y.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Ranks =
        Ranks { chip: Chip::Hopper, nodes: 1, per_node: 8, channels: 16, bandwidth: 371.0, nvls: true, amd: false };

    #[test]
    fn one_node_takes_the_ring_up_to_a_megabyte() {
        let way = |bytes| NODE.choice(Collective::AllReduce, bytes).map(|c| (c.0, c.1));
        assert_eq!(way(1 << 10), Some((Algorithm::Ring, Protocol::LL)));
        assert_eq!(way(1 << 19), Some((Algorithm::Ring, Protocol::LL)));
        assert_eq!(way(1 << 21), Some((Algorithm::Nvls, Protocol::Simple)));
        assert_eq!(way(1 << 30), Some((Algorithm::Nvls, Protocol::Simple)));
    }

    #[test]
    fn without_switches_that_add_the_ring_stays() {
        let ring = Ranks { nvls: false, ..NODE };
        for (bytes, protocol) in [(1 << 16, Protocol::LL), (1 << 24, Protocol::LL128), (1 << 30, Protocol::Simple)] {
            assert_eq!(
                ring.choice(Collective::AllReduce, bytes).map(|c| (c.0, c.1)),
                Some((Algorithm::Ring, protocol))
            );
        }
    }

    #[test]
    fn gathers_never_take_a_tree() {
        for nodes in [1, 2, 4, 16] {
            for i in 6..33 {
                let way = Ranks { nodes, bandwidth: 48.0, ..NODE }.choice(Collective::AllGather, 1 << i);
                assert!(way.is_some_and(|w| !matches!(w.0, Algorithm::Tree | Algorithm::NvlsTree)));
            }
        }
    }
}
