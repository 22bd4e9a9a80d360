//! What the checker asks of a target: what its kernels have, and which directives mean nothing to it.

/// What a target allows, known before anything is compiled.
#[derive(PartialEq, Eq, Debug)]
pub struct Limits {
    /// The target, as messages name it.
    pub target: &'static str,
    /// Bytes that a point of the grid has for the blocks and accumulators of a product.
    pub scratch_bytes: u64,
    /// The longest vector, a power of two. The shortest has 2 elements.
    pub lanes_max: u32,
    /// Directives that have no effect, each with the reason.
    pub without_effect: &'static [(Unused, &'static str)],
}

/// A directive that asks for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    AsyncCopy,
    PipelineStages,
    Warps,
    Swizzle,
    /// `padding=` of `use_shared_memory`.
    Padding,
}

impl Limits {
    /// Why a directive has no effect; `None` where it has one.
    pub fn ignores(&self, directive: Unused) -> Option<&'static str> {
        self.without_effect.iter().find(|(d, _)| *d == directive).map(|(_, why)| *why)
    }
}

/// The processor of the host.
pub const CPU: Limits = Limits {
    target: "cpu",
    scratch_bytes: 8 << 20,
    lanes_max: 64,
    without_effect: &[
        (Unused::AsyncCopy, "a core has no unit that copies while it computes; its caches fetch ahead on their own"),
        (Unused::PipelineStages, "panels are packed where they are used; there is no copy that could run ahead"),
        (Unused::Warps, "there are no warps; threads are chosen with `--threads` and `schedule.parallel`"),
        (Unused::Swizzle, "its caches have no banks that a layout could keep apart"),
        (Unused::Padding, "packed panels are read in order, and there are no banks that padding could keep apart"),
    ],
};

/// NVIDIA's GPUs. A point is a group of threads of one warp.
pub const CUDA: Limits = Limits {
    target: "cuda",
    scratch_bytes: 8 << 20,
    lanes_max: 32,
    without_effect: &[
        (Unused::AsyncCopy, "kernels for GPUs do not copy ahead of what they compute yet"),
        (Unused::PipelineStages, "kernels for GPUs do not copy ahead of what they compute yet"),
        (Unused::Warps, "a point of the grid is a group of threads of one warp, so far"),
        (Unused::Swizzle, "kernels for GPUs do not choose where blocks lie in shared memory yet"),
        (Unused::Padding, "kernels for GPUs do not choose where blocks lie in shared memory yet"),
    ],
};

const NOT_YET: &[(Unused, &str)] = &[
    (Unused::AsyncCopy, "kernels for GPUs do not copy ahead of what they compute yet"),
    (Unused::PipelineStages, "kernels for GPUs do not copy ahead of what they compute yet"),
    (Unused::Warps, "a point of the grid is a group of threads, so far"),
    (Unused::Swizzle, "kernels for GPUs do not choose where blocks lie in shared memory yet"),
    (Unused::Padding, "kernels for GPUs do not choose where blocks lie in shared memory yet"),
];

/// Devices of OpenCL. A point is a work group.
pub const OPENCL: Limits = Limits { target: "opencl", scratch_bytes: 8 << 20, lanes_max: 32, without_effect: NOT_YET };

/// AMD's GPUs. A point is a work group.
pub const AMDGPU: Limits = Limits { target: "amdgpu", scratch_bytes: 8 << 20, lanes_max: 32, without_effect: NOT_YET };
