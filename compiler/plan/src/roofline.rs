//! The time of operators on a device: work and memory one after the other, each at the efficiency
//! of its size.

use crate::topology::{Device, Steps};

/// One kernel.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Of products.
    pub product_flops: f64,
    /// Of elementwise work.
    pub vector_flops: f64,
    /// Read and written.
    pub bytes: f64,
}

impl Work {
    /// `batch` products of `[m, k]` and `[k, n]`, with so many bytes an element in and out.
    pub fn product(batch: f64, m: f64, n: f64, k: f64, input: f64, output: f64) -> Work {
        let bytes = batch * (input * (m * k + k * n) + output * m * n);
        Work { product_flops: 2.0 * batch * m * n * k, bytes, vector_flops: 0.0 }
    }

    /// Elementwise work on so many elements: operations and bytes of each.
    pub fn map(elems: f64, flops: f64, bytes: f64) -> Work {
        Work { product_flops: 0.0, vector_flops: elems * flops, bytes: elems * bytes }
    }
}

fn at(steps: &Steps, size: f64) -> f64 {
    steps.iter().find(|s| size >= s.0).map_or(1.0, |s| s.1)
}

impl Device {
    /// Peak of products in operations a second. A type without one has that of a wider type.
    pub fn peak(&self, dtype: &str) -> f64 {
        let of = |name: &str| self.tflops.get(name).copied();
        let wider = if dtype == "fp8" { "bf16" } else { "f32" };
        of(dtype).or_else(|| of(wider)).or_else(|| of("bf16")).unwrap_or(1.0) * 1e12
    }

    /// Seconds to move bytes to and from memory.
    pub fn memory_time(&self, bytes: f64) -> f64 {
        bytes / (self.memory_gbs * 1e9 * at(&self.memory_efficiency, bytes / 1e6))
    }

    /// Seconds of one kernel.
    pub fn time(&self, work: &Work, dtype: &str) -> f64 {
        let products = match work.product_flops {
            0.0 => 0.0,
            f => f / (self.peak(dtype) * at(&self.product_efficiency, f / 1e9)),
        };
        let vector = match work.vector_flops {
            0.0 => 0.0,
            f => f / (self.vector_tflops * 1e12 * at(&self.vector_efficiency, f / 1e9)),
        };
        products + vector + if work.bytes > 0.0 { self.memory_time(work.bytes) } else { 0.0 }
    }

    /// Seconds of attention in one kernel for so many operations.
    pub fn attention_time(&self, flops: f64, backward: bool, dtype: &str) -> f64 {
        let share = if backward { self.attention_backward } else { self.attention_forward };
        flops / (self.peak(dtype) * share)
    }
}

#[cfg(test)]
mod tests {
    use crate::roofline::Work;
    use crate::topology::Topology;

    #[test]
    fn the_measured_product_comes_out() {
        let Some(t) = Topology::named("dgx-h100") else { panic!("shipped") };
        let mut device = t.device;
        // Read on a device with the same processor and faster memory.
        device.memory_gbs = 4800.0;
        let n = 8192.0;
        let reached = 2.0 * n * n * n / device.time(&Work::product(1.0, n, n, n, 2.0, 2.0), "bf16") / 1e12;
        assert!((reached / 788.0 - 1.0).abs() < 0.01, "{reached}");
    }
}
