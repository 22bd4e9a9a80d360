//! The time of operators on a device: work and memory one after the other, each at the efficiency
//! of its size.

use crate::attention::Attention;
use crate::topology::{Device, at};

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

    /// Seconds of one kernel whose sizes are not known one by one.
    pub fn time(&self, work: &Work, dtype: &str) -> f64 {
        let products = match work.product_flops {
            0.0 => 0.0,
            f => f / (self.peak(dtype) * at(&self.product_efficiency, f / 1e9)),
        };
        let vector = match work.vector_flops {
            0.0 => 0.0,
            f => f / (self.vector_tflops * 1e12 * at(&self.vector_efficiency, f / 1e9)),
        };
        let memory = if work.bytes > 0.0 { self.memory_time(work.bytes) } else { 0.0 };
        let start = if work.product_flops > 0.0 { 0.0 } else { self.kernel_us * 1e-6 };
        start + products + vector + memory
    }

    /// Seconds of `[m, k] @ [k, n]`, with so many bytes an element in and out.
    pub fn product_time(&self, [m, n, k]: [f64; 3], input: f64, output: f64, dtype: &str) -> f64 {
        let faster = self.products.as_ref().and_then(|p| match dtype {
            "bf16" | "f16" => Some((p, 1.0)),
            "fp8" => Some((p, p.fp8)),
            _ => None,
        });
        let Some((table, times)) = faster else {
            return self.time(&Work::product(1.0, m, n, k, input, output), dtype);
        };
        // Measured with two bytes for each element of the result; those beyond come on top.
        let more = (output - 2.0).max(0.0) * m * n;
        let beyond = if more > 0.0 { self.memory_time(more) } else { 0.0 };
        2.0 * m * n * k / (table.rate(m, n, k) * times * 1e12) + beyond
    }

    /// Seconds of attention in one kernel over so many keys for so many operations. A kernel that the machine does not
    /// have is as fast as its newest.
    pub fn attention_time(&self, kernel: Attention, flops: f64, keys: f64, backward: bool) -> f64 {
        let rates = self.attention.get(&kernel).or_else(|| self.attention.values().next_back());
        let share = rates.map_or(1.0, |r| at(if backward { &r.backward } else { &r.forward }, keys));
        flops / (self.peak("bf16") * share)
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::Topology;

    /// Products of a Llama 2 70B layer with 4096 tokens on another H100, as Vidur measured them
    /// (data/profiling/compute/h100, medians): columns, depth, milliseconds.
    #[test]
    fn products_measured_elsewhere_come_out() {
        let Some(t) = Topology::named("dgx-h100") else { panic!("shipped") };
        for (n, k, ms) in
            [(10240.0, 8192.0, 0.9825), (8192.0, 8192.0, 0.7885), (57344.0, 8192.0, 5.6685), (8192.0, 28672.0, 2.647)]
        {
            let found = t.device.product_time([4096.0, n, k], 2.0, 2.0, "bf16") * 1e3;
            println!("4096 x {n} x {k}: {ms} ms measured, {found:.3} ms predicted");
            assert!((found / ms - 1.0).abs() < 0.08);
        }
    }
}
