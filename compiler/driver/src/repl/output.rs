//! Output that is gathered in memory.

use std::io::Write;
use std::sync::{Arc, Mutex};

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
