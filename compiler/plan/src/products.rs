//! How fast products of given sizes run: a table that was measured.

use serde::{Deserialize, Serialize};

/// Rates of products `[m, k] @ [k, n]` in bf16 that were measured on a grid of sizes, in TFLOP/s.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Products {
    pub m: Vec<f64>,
    pub n: Vec<f64>,
    pub k: Vec<f64>,
    /// By `m`, `n` and `k`.
    pub tflops: Vec<Vec<Vec<f64>>>,
    /// How many times as fast they are in eight bits.
    pub fp8: f64,
}

/// Where a size lies on an axis of a grid: the place before it, the way to the next one, and how much smaller
/// than the whole axis it is.
fn grid_cell(axis: &[f64], size: f64) -> (usize, f64, f64) {
    let (first, last) = (axis[0], axis[axis.len() - 1]);
    let inside = size.clamp(first, last);
    let i = axis.partition_point(|x| *x <= inside).clamp(1, axis.len() - 1) - 1;
    let way = (inside / axis[i]).log2() / (axis[i + 1] / axis[i]).log2();
    (i, way, (size / first).min(1.0))
}

impl Products {
    /// TFLOP/s of one product in bf16. Between the sizes of the grid rates lie on straight lines over the logarithms;
    /// below it a product takes as long as the smallest one.
    pub fn rate(&self, m: f64, n: f64, k: f64) -> f64 {
        let ((a, wa, sa), (b, wb, sb), (c, wc, sc)) =
            (grid_cell(&self.m, m), grid_cell(&self.n, n), grid_cell(&self.k, k));
        let mut rate = 0.0;
        for corner in 0..8usize {
            let (i, j, l) = (corner & 1, corner >> 1 & 1, corner >> 2);
            let share = |way: f64, next: usize| if next == 1 { way } else { 1.0 - way };
            rate += share(wa, i) * share(wb, j) * share(wc, l) * self.tflops[a + i][b + j][c + l];
        }
        rate * sa * sb * sc
    }

    /// What would make rates meaningless. A table that passes can be asked for any size above 0.
    pub fn check(&self) -> Result<(), String> {
        for (name, axis) in [("m", &self.m), ("n", &self.n), ("k", &self.k)] {
            if axis.len() < 2 || axis[0] <= 0.0 || !axis.is_sorted_by(|a, b| a < b) {
                return Err(format!("products.{name} must be two sizes or more that rise from above 0"));
            }
        }
        let of_size =
            |plane: &Vec<Vec<f64>>| plane.len() == self.n.len() && plane.iter().all(|r| r.len() == self.k.len());
        if self.tflops.len() != self.m.len() || !self.tflops.iter().all(of_size) {
            let (m, n, k) = (self.m.len(), self.n.len(), self.k.len());
            return Err(format!("products.tflops must be {m} lists of {n} lists of {k} rates, as m, n and k say"));
        }
        let mut rates = self.tflops.iter().flatten().flatten().chain([&self.fp8]);
        match rates.all(|r| r.is_finite() && *r > 0.0) {
            true => Ok(()),
            false => Err("rates of products must be above 0".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Products {
        let plane = |scale: f64| vec![vec![scale, 2.0 * scale], vec![3.0 * scale, 4.0 * scale]];
        Products {
            m: vec![1.0, 4.0],
            n: vec![2.0, 8.0],
            k: vec![1.0, 2.0],
            tflops: vec![plane(1.0), plane(10.0)],
            fp8: 2.0,
        }
    }

    #[test]
    fn sizes_of_the_grid_are_read_and_others_lie_between() {
        let t = table();
        assert_eq!([t.rate(1.0, 2.0, 1.0), t.rate(4.0, 8.0, 2.0), t.rate(4.0, 2.0, 2.0)], [1.0, 40.0, 20.0]);
        assert_eq!(t.rate(2.0, 2.0, 1.0), 5.5);
        // Larger than the grid: the last rate; half the smallest: as long as the smallest.
        assert_eq!([t.rate(400.0, 8.0, 2.0), t.rate(1.0, 1.0, 1.0)], [40.0, 0.5]);
    }

    #[test]
    fn wrong_tables_are_refused() {
        let cases: [(fn(&mut Products), &str); 4] = [
            (|t| t.n = vec![8.0, 2.0], "products.n"),
            (|t| t.k = vec![1.0], "products.k"),
            (|t| t.tflops.truncate(1), "2 lists of 2 lists of 2"),
            (|t| t.fp8 = 0.0, "above 0"),
        ];
        assert_eq!(table().check(), Ok(()));
        for (change, says) in cases {
            let mut t = table();
            change(&mut t);
            assert!(t.check().is_err_and(|e| e.contains(says)), "{says}");
        }
    }
}
