//! Where a value lies: in a layout, or in boxes that are told one by one.

use std::ops::Range;
use std::sync::Arc;
use tessera_base::Sharding;

/// The part that each device holds, by device.
pub type Parts = Vec<Vec<Range<u64>>>;

/// The parts of a tensor in a layout.
pub fn parts(layout: &Sharding, shape: &[u64], devices: u64) -> Parts {
    (0..devices).map(|d| layout.block(shape, d)).collect()
}

/// What the devices hold of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    Layout(Sharding),
    /// By device. Boxes may overlap, and need not cover the value.
    Boxes(Arc<Parts>),
    /// On the first device alone.
    First,
}

impl Placement {
    /// The box of one device.
    pub fn part(&self, shape: &[u64], device: u64) -> Vec<Range<u64>> {
        match self {
            Placement::Layout(layout) => layout.block(shape, device),
            Placement::Boxes(parts) => parts.get(device as usize).cloned().unwrap_or_else(|| vec![0..0; shape.len()]),
            Placement::First if device == 0 => shape.iter().map(|&n| 0..n).collect(),
            Placement::First => vec![0..0; shape.len()],
        }
    }

    pub fn parts(&self, shape: &[u64], devices: u64) -> Parts {
        match self {
            Placement::Layout(layout) => parts(layout, shape, devices),
            Placement::Boxes(parts) => Parts::clone(parts),
            Placement::First => (0..devices).map(|d| self.part(shape, d)).collect(),
        }
    }

    /// Whether a device has nothing of what lies here, because its positions are others.
    pub fn is_absent(&self, device: u64) -> bool {
        self.layout().is_some_and(|layout| layout.is_absent(device))
    }

    pub fn layout(&self) -> Option<&Sharding> {
        match self {
            Placement::Layout(layout) => Some(layout),
            _ => None,
        }
    }
}

impl From<Sharding> for Placement {
    fn from(layout: Sharding) -> Placement {
        Placement::Layout(layout)
    }
}
