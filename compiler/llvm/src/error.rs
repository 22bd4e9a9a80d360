//! What can go wrong between a kernel and its machine code.

use std::fmt;
use tessera_base::{Code, Diagnostic, Span};

/// A failure of the code generator, as a diagnostic without its place in source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LlvmError {
    pub code: Code,
    pub message: String,
}

impl LlvmError {
    pub fn new(code: Code, message: impl Into<String>) -> LlvmError {
        LlvmError { code, message: message.into() }
    }

    /// A mistake in generated code: ours, not the user's.
    pub fn internal(message: impl Into<String>) -> LlvmError {
        LlvmError::new(Code::E0603, message)
    }

    /// What LLVM says of a text.
    pub fn text(message: impl Into<String>) -> LlvmError {
        LlvmError::new(Code::E0012, message)
    }

    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let d = Diagnostic::new(self.code, span, self.message.clone());
        match self.code {
            Code::E0601 => d.help("install the package libllvm22, or set TESSERA_LLVM to the path of libLLVM.so.22.1"),
            _ => d,
        }
    }
}

impl fmt::Display for LlvmError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for LlvmError {}
