//! The standard library that the program carries in itself.

/// Modules of the standard library by name, with their paths and texts.
pub const FILES: &[(&str, &str, &str)] = &[
    ("nn", "std/nn.tsr", include_str!("../../../std/nn.tsr")),
    ("optim", "std/optim.tsr", include_str!("../../../std/optim.tsr")),
    ("parallel", "std/parallel.tsr", include_str!("../../../std/parallel.tsr")),
    ("data", "std/data.tsr", include_str!("../../../std/data.tsr")),
    ("metrics", "std/metrics.tsr", include_str!("../../../std/metrics.tsr")),
    ("stats", "std/stats.tsr", include_str!("../../../std/stats.tsr")),
    ("ragged", "std/ragged.tsr", include_str!("../../../std/ragged.tsr")),
    ("init", "std/init.tsr", include_str!("../../../std/init.tsr")),
    ("plot", "std/plot.tsr", include_str!("../../../std/plot.tsr")),
    ("tokens", "std/tokens.tsr", include_str!("../../../std/tokens.tsr")),
    ("scaling", "std/scaling.tsr", include_str!("../../../std/scaling.tsr")),
    ("onnx", "std/onnx.tsr", include_str!("../../../std/onnx.tsr")),
    ("onnx_recurrent", "std/onnx_recurrent.tsr", include_str!("../../../std/onnx_recurrent.tsr")),
    ("onnx_images", "std/onnx_images.tsr", include_str!("../../../std/onnx_images.tsr")),
    ("onnx_attention", "std/onnx_attention.tsr", include_str!("../../../std/onnx_attention.tsr")),
    ("calls", "std/calls.tsr", include_str!("../../../std/calls.tsr")),
    ("args", "std/args.tsr", include_str!("../../../std/args.tsr")),
    ("linalg", "std/linalg.tsr", include_str!("../../../std/linalg.tsr")),
    ("profile", "std/profile.tsr", include_str!("../../../std/profile.tsr")),
    ("schedules", "std/schedules.tsr", include_str!("../../../std/schedules.tsr")),
    ("recurrent", "std/recurrent.tsr", include_str!("../../../std/recurrent.tsr")),
    ("losses", "std/losses.tsr", include_str!("../../../std/losses.tsr")),
    ("sampling", "std/sampling.tsr", include_str!("../../../std/sampling.tsr")),
    ("derivatives", "std/derivatives.tsr", include_str!("../../../std/derivatives.tsr")),
    ("solve", "std/solve.tsr", include_str!("../../../std/solve.tsr")),
    ("minimize", "std/minimize.tsr", include_str!("../../../std/minimize.tsr")),
    ("vision", "std/vision.tsr", include_str!("../../../std/vision.tsr")),
    ("transformer", "std/transformer.tsr", include_str!("../../../std/transformer.tsr")),
];

/// The names of the modules of the standard library.
pub fn modules() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checker_knows_the_names_of_all_modules() {
        assert_eq!(super::modules().collect::<Vec<_>>(), tessera_core::builtins::LIBRARY);
    }
}
