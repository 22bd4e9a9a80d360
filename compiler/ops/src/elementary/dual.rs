//! Values with their derivative by one parameter: an algorithm that is written with them gives both.

use crate::scalar::{Val, Writer};

/// A value and its derivative; `None` where it does not depend on the parameter.
#[derive(Clone, Copy)]
pub(super) struct Dual {
    pub v: Val,
    pub d: Option<Val>,
}

impl Dual {
    pub fn constant(v: Val) -> Dual {
        Dual { v, d: None }
    }

    /// A function of `x` with the value `v` and the derivative `slope`, which is asked for where it counts.
    pub fn of(w: &mut Writer, x: Dual, v: Val, slope: impl FnOnce(&mut Writer) -> Val) -> Dual {
        let d = x.d.map(|d| {
            let slope = slope(w);
            w.mul(slope, d)
        });
        Dual { v, d }
    }

    pub fn add(self, w: &mut Writer, y: Dual) -> Dual {
        let d = match (self.d, y.d) {
            (Some(p), Some(q)) => Some(w.add(p, q)),
            (p, q) => p.or(q),
        };
        Dual { v: w.add(self.v, y.v), d }
    }

    pub fn neg(self, w: &mut Writer) -> Dual {
        Dual { v: w.neg(self.v), d: self.d.map(|d| w.neg(d)) }
    }

    pub fn sub(self, w: &mut Writer, y: Dual) -> Dual {
        let d = match (self.d, y.d) {
            (Some(p), Some(q)) => Some(w.sub(p, q)),
            (p, q) => p.or_else(|| q.map(|q| w.neg(q))),
        };
        Dual { v: w.sub(self.v, y.v), d }
    }

    pub fn mul(self, w: &mut Writer, y: Dual) -> Dual {
        let d = match (self.d, y.d) {
            (Some(p), Some(q)) => {
                let part = w.mul(p, y.v);
                Some(w.fma(self.v, q, part))
            }
            (Some(p), None) => Some(w.mul(p, y.v)),
            (None, Some(q)) => Some(w.mul(self.v, q)),
            (None, None) => None,
        };
        Dual { v: w.mul(self.v, y.v), d }
    }

    /// `self · y + z`.
    pub fn fma(self, w: &mut Writer, y: Dual, z: Dual) -> Dual {
        if self.d.or(y.d).or(z.d).is_none() {
            return Dual::constant(w.fma(self.v, y.v, z.v));
        }
        let v = w.fma(self.v, y.v, z.v);
        let product = self.mul(w, y);
        Dual { v, d: product.add(w, z).d }
    }

    pub fn div(self, w: &mut Writer, y: Dual) -> Dual {
        let v = w.div(self.v, y.v);
        let change = match (self.d, y.d) {
            (Some(p), Some(q)) => {
                let back = w.neg(v);
                Some(w.fma(back, q, p))
            }
            (p, q) => p.or_else(|| {
                q.map(|q| {
                    let product = w.mul(v, q);
                    w.neg(product)
                })
            }),
        };
        Dual { v, d: change.map(|c| w.div(c, y.v)) }
    }

    pub fn scale(self, w: &mut Writer, by: f64) -> Dual {
        Dual { v: w.mul_c(self.v, by), d: self.d.map(|d| w.mul_c(d, by)) }
    }

    pub fn plus(self, w: &mut Writer, c: f64) -> Dual {
        Dual { v: w.add_c(self.v, c), d: self.d }
    }

    pub fn select(w: &mut Writer, condition: Val, x: Dual, y: Dual) -> Dual {
        let zero = w.f(0.0, x.v);
        let d = match (x.d, y.d) {
            (None, None) => None,
            (p, q) => Some(w.select(condition, p.unwrap_or(zero), q.unwrap_or(zero))),
        };
        Dual { v: w.select(condition, x.v, y.v), d }
    }

    /// `c[0] + c[1] x + …` by Horner's rule.
    pub fn horner(self, w: &mut Writer, c: &[f64]) -> Dual {
        let v = w.horner(self.v, c);
        let slopes: Vec<f64> = c.iter().enumerate().skip(1).map(|(i, c)| i as f64 * c).collect();
        Dual::of(w, self, v, |w| w.horner(self.v, &slopes))
    }
}
