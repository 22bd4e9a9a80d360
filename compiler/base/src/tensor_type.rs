//! The type of a tensor: sizes, element type, sharding.

use crate::{DType, Monoid, Own, Sharding, Size};
use std::fmt;

/// `Tensor[B@dp, 4*D, f32]`. The rank is always known here; the element type may not be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    pub shape: Vec<Size>,
    /// `None` where an annotation leaves the element type open.
    pub dtype: Option<DType>,
    pub sharding: Sharding,
}

impl TensorType {
    pub fn new(shape: Vec<Size>, dtype: DType) -> TensorType {
        TensorType { shape, dtype: Some(dtype), sharding: Sharding::default() }
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The product of all sizes.
    pub fn elems(&self) -> Size {
        self.shape.iter().fold(Size::constant(1), |n, d| n.mul(d))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut parts: Vec<String> =
            self.shape.iter().enumerate().map(|(i, s)| format!("{s}{}", self.sharding.dim_suffix(i))).collect();
        parts.extend(self.dtype.map(|d| d.name().to_owned()));
        let told = self.sharding.partial.iter().filter(|p| p.0 != Monoid::Each(Own::Zero));
        parts.extend(told.map(|(m, a)| format!("{m}@{a}")));
        write!(f, "Tensor[{}]", parts.join(", "))
    }
}
