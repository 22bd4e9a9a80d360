//! What each device along an axis of the mesh has of a value, in per-device code.

use std::fmt;

/// What a device has along one axis, where that is not said to be the same on all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Own {
    /// A value of its own, of which nothing more is known.
    Any,
    /// The same, made of other positions of its block than those of the result: along the dim that is split they are mixed.
    Mixed,
    /// Its block of a tensor that the axis splits along this dim.
    Block(usize),
    /// Its part of a sum, of a maximum, of a minimum.
    Sum,
    Max,
    Min,
    /// The mean of its part: the mean of all these is that of the whole.
    Mean,
    /// The same as the others, but the sum of their means: too much by as many times as there are devices.
    Times,
    /// Zeros: the same as the others, and a summand of every sum.
    Zero,
}

impl Own {
    const ALL: [Own; 7] = [Own::Any, Own::Sum, Own::Max, Own::Min, Own::Mean, Own::Times, Own::Zero];

    pub fn name(self) -> &'static str {
        match self {
            Own::Any | Own::Mixed => "each",
            Own::Block(_) => "block",
            Own::Sum => "sum",
            Own::Max => "max",
            Own::Min => "min",
            Own::Mean => "mean",
            Own::Times => "times",
            Own::Zero => "zero",
        }
    }

    /// What a word stands for that has no number behind it.
    pub fn parse(text: &str) -> Option<Own> {
        Own::ALL.into_iter().find(|own| own.name() == text)
    }

    /// Whether devices have different values.
    pub fn differs(self) -> bool {
        !matches!(self, Own::Times | Own::Zero)
    }

    /// Whether it is a value of its own, of which no part of another is known.
    pub fn is_alone(self) -> bool {
        matches!(self, Own::Any | Own::Mixed)
    }

    /// Whether it has to be put together, or divided, before it is what it means.
    pub fn is_part(self) -> bool {
        matches!(self, Own::Sum | Own::Max | Own::Min | Own::Mean | Own::Times)
    }

    /// The same along a tensor whose dims are others: where this one is now, or what is left without it.
    pub fn moved(self, to: impl FnOnce(usize) -> Option<usize>, without: Own) -> Own {
        match self {
            Own::Block(dim) => to(dim).map_or(without, Own::Block),
            own => own,
        }
    }

    /// What a value is that is one or the other. `None` is the same on all devices.
    pub fn join(a: Option<Own>, b: Option<Own>) -> Option<Own> {
        match (a, b) {
            _ if a == b => a,
            (Some(Own::Mixed), _) | (_, Some(Own::Mixed)) => Some(Own::Mixed),
            (Some(Own::Zero), None) | (None, Some(Own::Zero)) => None,
            // What all have is a block that is repeated.
            (None | Some(Own::Zero), Some(own @ (Own::Block(_) | Own::Times)))
            | (Some(own @ (Own::Block(_) | Own::Times)), None | Some(Own::Zero)) => Some(own),
            (Some(Own::Zero), Some(own @ (Own::Sum | Own::Mean)))
            | (Some(own @ (Own::Sum | Own::Mean)), Some(Own::Zero)) => Some(own),
            _ => Some(Own::Any),
        }
    }

    /// Whether a place of this kind takes a value of another one.
    pub fn takes(a: Option<Own>, b: Option<Own>) -> bool {
        match (a, b) {
            _ if a == b => true,
            (_, Some(Own::Times)) | (Some(Own::Times), _) => false,
            (_, None | Some(Own::Zero)) | (Some(Own::Any), _) => true,
            (Some(Own::Block(_)), Some(own)) => !own.is_part(),
            (Some(Own::Mixed), _) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Own::Block(dim) => write!(f, "block({dim})"),
            own => f.write_str(own.name()),
        }
    }
}
