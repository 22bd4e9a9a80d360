//! The time of collectives: a latency and a bandwidth per tier and size band; over several tiers
//! one after the other, with what the inner tier leaves.

use crate::topology::{Band, Tier, Topology, at};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    /// From one device to another.
    Point,
}

impl Collective {
    /// The bytes that a device's link carries for a buffer that has `bytes` in all: the usual
    /// factors between algorithm and bus bandwidth.
    pub fn carried(self, bytes: f64, n: u64) -> f64 {
        let share = n.saturating_sub(1) as f64 / n.max(1) as f64;
        match self {
            Collective::AllReduce => 2.0 * share * bytes,
            Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => share * bytes,
            Collective::Point => bytes,
        }
    }

    fn bands(self, tier: &Tier) -> &[Band] {
        match self {
            Collective::AllReduce => &tier.all_reduce,
            Collective::AllGather => &tier.all_gather,
            Collective::ReduceScatter => &tier.reduce_scatter,
            Collective::AllToAll => &tier.all_to_all,
            Collective::Point => &tier.point,
        }
    }

    /// Seconds in one tier, among `n` devices, of a buffer of `bytes` in all.
    pub fn in_tier(self, tier: &Tier, n: u64, bytes: f64) -> f64 {
        match n < 2 {
            true => 0.0,
            false => self.carrying(tier, n, bytes, self.carried(bytes, n) / at(&tier.groups, n as f64)),
        }
    }

    /// Seconds in one tier where a device's links carry `carried` bytes for a buffer of `bytes`, along `n` devices.
    fn carrying(self, tier: &Tier, n: u64, bytes: f64, carried: f64) -> f64 {
        if bytes <= 0.0 {
            return 0.0;
        }
        let bands = self.bands(tier);
        let Some(i) = bands.iter().position(|b| bytes <= b.upto as f64) else { return 0.0 };
        let band = bands[i];
        let us = match i.checked_sub(1).map(|i| bands[i]) {
            Some(before) if bytes < band.from as f64 => {
                let way = (bytes - before.upto as f64) / (band.from as f64 - before.upto as f64);
                before.latency(n) + way * (band.latency(n) - before.latency(n))
            }
            _ => band.latency(n),
        };
        us * 1e-6 + carried / (band.gbs * 1e9)
    }
}

/// The devices of a group: how many in each node, and over how many nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    pub inner: u64,
    pub outer: u64,
}

impl Group {
    /// `n` devices that lie `stride` apart, where nodes have `node` devices.
    pub fn new(n: u64, stride: u64, node: u64) -> Group {
        let (n, stride, node) = (n.max(1), stride.max(1), node.max(1));
        let inner = (node / stride).clamp(1, n);
        Group { inner, outer: n.div_ceil(inner) }
    }

    pub fn devices(self) -> u64 {
        self.inner * self.outer
    }
}

impl Topology {
    /// Seconds of an exchange in which a device's links carry so many bytes to or from devices of
    /// its node and others. Both kinds of links work at the same time.
    pub fn direct(&self, what: Collective, near: f64, far: f64) -> f64 {
        let tier = |i: usize| &self.tiers[i.min(self.tiers.len() - 1)];
        what.carrying(tier(0), 2, near, near).max(what.carrying(tier(1), 2, far, far))
    }

    /// Seconds of a collective of a group on a buffer of `bytes` in all.
    pub fn collective(&self, what: Collective, group: Group, bytes: f64) -> f64 {
        let (near, far) = (&self.tiers[0], &self.tiers[1.min(self.tiers.len() - 1)]);
        let Group { inner, outer } = group;
        if outer <= 1 {
            return what.in_tier(near, inner, bytes);
        }
        match what {
            Collective::Point => what.in_tier(far, 2, bytes),
            // Both tiers carry their share at the same time.
            Collective::AllToAll => {
                let away = bytes * (outer - 1) as f64 / outer as f64;
                what.in_tier(far, outer, away).max(what.in_tier(near, inner, bytes / outer as f64))
            }
            // A ring goes through both tiers at the same time.
            Collective::AllGather | Collective::ReduceScatter => {
                what.in_tier(near, inner, bytes).max(what.in_tier(far, outer, bytes / inner as f64))
            }
            Collective::AllReduce if inner == 1 => what.in_tier(far, outer, bytes),
            Collective::AllReduce => {
                let inside = [Collective::ReduceScatter, Collective::AllGather].map(|c| c.in_tier(near, inner, bytes));
                what.in_tier(far, outer, bytes / inner as f64).max(inside[0] + inside[1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes with the bus bandwidth measured.
    fn errors(topology: &str, what: Collective, n: u64, rows: &[(f64, f64)]) -> Vec<f64> {
        let Some(t) = Topology::named(topology) else { panic!("{topology}") };
        let one = |&(bytes, gbs): &(f64, f64)| {
            let seconds = t.collective(what, Group { inner: n, outer: 1 }, bytes);
            what.carried(bytes, n) / seconds / 1e9 / gbs - 1.0
        };
        rows.iter().map(one).collect()
    }

    const M: f64 = 1048576.0;

    #[test]
    fn published_curves_within_five_percent() {
        let rs = [
            (128.0, 311.0),
            (256.0, 331.0),
            (512.0, 341.0),
            (1024.0, 349.0),
            (2048.0, 355.0),
            (4096.0, 358.0),
            (8192.0, 362.0),
        ];
        let ar = [(512.0, 586.0), (1024.0, 681.0), (2048.0, 758.0), (4096.0, 839.0), (8192.0, 841.0)];
        for (topology, what, n, rows) in
            [("dgx-h100", Collective::ReduceScatter, 8, &rs[..]), ("nvl72", Collective::AllReduce, 72, &ar[..])]
        {
            let rows: Vec<(f64, f64)> = rows.iter().map(|r| (r.0 * M, r.1)).collect();
            for (e, (bytes, gbs)) in errors(topology, what, n, &rows).iter().zip(&rows) {
                println!(
                    "{topology} {what:?} {:>6} MiB: {gbs} GB/s measured, predicted {:+.1} %",
                    bytes / M,
                    e * 100.0
                );
                assert!(e.abs() < 0.05);
            }
        }
    }

    #[test]
    fn more_bytes_take_longer() {
        for name in crate::topology::names() {
            let Some(t) = Topology::named(name) else { panic!("{name}") };
            for tier in &t.tiers {
                for what in [Collective::AllReduce, Collective::AllGather, Collective::AllToAll, Collective::Point] {
                    let times: Vec<f64> = (0..36)
                        .map(|i| what.in_tier(tier, 8, f64::from(1u32 << (i % 31)) * if i > 30 { 32.0 } else { 1.0 }))
                        .collect();
                    assert!(times[..31].is_sorted(), "{name} {what:?} {times:?}");
                }
            }
        }
    }

    #[test]
    fn groups_lie_in_nodes() {
        assert_eq!(Group::new(8, 1, 8), Group { inner: 8, outer: 1 });
        assert_eq!(Group::new(16, 8, 8), Group { inner: 1, outer: 16 });
        assert_eq!(Group::new(16, 4, 8), Group { inner: 2, outer: 8 });
    }
}
