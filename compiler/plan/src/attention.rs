//! Kernels of attention.

use serde::{Deserialize, Serialize};

/// How attention is computed between its products.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Attention {
    /// Scores are written to memory: two products and what is between them.
    #[serde(rename = "unfused")]
    Unfused,
    /// FlashAttention and its port to Triton (arXiv 2205.14135).
    #[serde(rename = "flash-1")]
    Flash1,
    /// FlashAttention-2 (arXiv 2307.08691).
    #[serde(rename = "flash-2")]
    Flash2,
    /// FlashAttention-3 (arXiv 2407.08608).
    #[serde(rename = "flash-3")]
    Flash3,
    /// cuDNN's of 2025.
    #[serde(rename = "cudnn")]
    Cudnn,
}

impl Attention {
    pub fn name(self) -> &'static str {
        match self {
            Attention::Unfused => "unfused",
            Attention::Flash1 => "flash-1",
            Attention::Flash2 => "flash-2",
            Attention::Flash3 => "flash-3",
            Attention::Cudnn => "cudnn",
        }
    }
}
