//! Kinds of GPUs, as LLVM tells them apart.

/// What kernels of a kind of GPU look like to LLVM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Nvptx,
    /// `exact`: whether divisions and roots of 32 bits are rounded to nearest.
    Spirv {
        exact: bool,
    },
    Amdgpu,
}

/// Whose value a lane asks for.
#[derive(Clone, Copy)]
pub enum Whose {
    /// Of the lane so many further on; the last ones get anything.
    After(u32),
    /// Of the lane whose number differs in these bits.
    Across(u32),
    First,
}

impl Dialect {
    /// How LLVM marks a function that kernels call (`spir_func`): only SPIR-V has any.
    pub const FUNCTION: u32 = 75;

    /// Whether an operand is a piece of memory and an offset.
    pub fn counts_from_pieces(self) -> bool {
        matches!(self, Dialect::Spirv { .. })
    }

    /// How LLVM marks a function that a launch begins at.
    pub fn convention(self) -> u32 {
        match self {
            Dialect::Nvptx => 71,
            Dialect::Spirv { .. } => 76,
            Dialect::Amdgpu => 91,
        }
    }
}
