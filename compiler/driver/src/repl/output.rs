//! Where a session's output goes that is no terminal: memory, or someone who listens.

use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tessera_base::Diagnostic;
use tessera_core::ty::Ty;
use tessera_resolve::source::SourceMap;
use tessera_runtime::host_value::HostValue;
use tessera_runtime::progress::Progress;

/// A value that an input ends with.
pub struct Shown {
    pub ty: Ty,
    pub value: Option<HostValue>,
    /// As a terminal shows it, with its type.
    pub text: String,
}

/// Someone who is told what a session has to say.
pub trait Listener {
    /// Output of programs, while they run, and of commands.
    fn out(&self, text: &str);
    /// What is said beside the output.
    fn remark(&self, text: &str);
    /// Errors and warnings.
    fn told(&self, diagnostics: &[Diagnostic], sources: &SourceMap);
    /// A picture that a program shows while it runs, as SVG.
    fn picture(&self, svg: String);
    /// How far a loop is.
    fn progress(&self, progress: &Progress);
    /// The value of a statement, or that it has none to show.
    fn value(&self, shown: Option<Shown>);
}

/// Output of programs on its way to a listener.
pub struct ToListener(pub Rc<dyn Listener>);

impl Write for ToListener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.out(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes that several writers share.
#[derive(Clone, Default)]
pub struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// What was written since it was taken last, as text.
    pub fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(|e| e.into_inner()));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What goes to all of some buffers.
pub struct Each(pub [Buffer; 2]);

impl Write for Each {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for buffer in &mut self.0 {
            buffer.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
