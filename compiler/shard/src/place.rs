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
pub enum Place {
    Layout(Sharding),
    /// By device. Boxes may overlap, and need not cover the value.
    Boxes(Arc<Parts>),
}

impl Place {
    /// The box of one device.
    pub fn part(&self, shape: &[u64], device: u64) -> Vec<Range<u64>> {
        match self {
            Place::Layout(layout) => layout.block(shape, device),
            Place::Boxes(parts) => parts.get(device as usize).cloned().unwrap_or_else(|| vec![0..0; shape.len()]),
        }
    }

    pub fn parts(&self, shape: &[u64], devices: u64) -> Parts {
        match self {
            Place::Layout(layout) => parts(layout, shape, devices),
            Place::Boxes(parts) => Parts::clone(parts),
        }
    }

    pub fn layout(&self) -> Option<&Sharding> {
        match self {
            Place::Layout(layout) => Some(layout),
            Place::Boxes(_) => None,
        }
    }
}

impl From<Sharding> for Place {
    fn from(layout: Sharding) -> Place {
        Place::Layout(layout)
    }
}
