//! What is written to standard output and standard error by others than the session: libraries, the compiler's remarks.
//! It is read from pipes and told like the output of programs.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Stands in a pipe behind what belongs to a cell.
const MARK: &[u8] = b"\0the cell ends here\0";
/// Whoever closed the pipe is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The two streams of the process, as pipes.
pub struct Captured(Vec<(PipeWriter, Receiver<()>)>);

impl Captured {
    /// Begins to tell what is written, with whether it was an error.
    ///
    /// # Errors
    /// Where there are no pipes or threads to be had.
    pub fn start(tell: impl Fn(bool, &str) + Clone + Send + 'static) -> std::io::Result<Captured> {
        let mut pipes = vec![];
        for error in [false, true] {
            let (reader, writer) = std::io::pipe()?;
            match error {
                false => rustix::stdio::dup2_stdout(&writer)?,
                true => rustix::stdio::dup2_stderr(&writer)?,
            }
            let (settled, is_settled) = channel();
            let tell = tell.clone();
            std::thread::Builder::new()
                .name("streams".into())
                .spawn(move || read(reader, |text| tell(error, text), &settled))?;
            pipes.push((writer, is_settled));
        }
        Ok(Captured(pipes))
    }

    /// Waits until everything is told that was written so far.
    pub fn settle(&mut self) {
        // What the library of Rust keeps of a line.
        let _ = std::io::stdout().flush();
        for (writer, settled) in &mut self.0 {
            if writer.write_all(MARK).is_ok() {
                let _ = settled.recv_timeout(PATIENCE);
            }
        }
    }
}

fn read(mut reader: PipeReader, tell: impl Fn(&str), settled: &Sender<()>) {
    let (mut waiting, mut chunk) = (vec![], vec![0; 1 << 16]);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(n) => waiting.extend_from_slice(&chunk[..n]),
        }
        while let Some(at) = waiting.windows(MARK.len()).position(|w| w == MARK) {
            say(&tell, &waiting[..at]);
            waiting.drain(..at + MARK.len());
            if settled.send(()).is_err() {
                return;
            }
        }
        let whole = whole(&waiting);
        say(&tell, &waiting[..whole]);
        waiting.drain(..whole);
    }
}

fn say(tell: &impl Fn(&str), bytes: &[u8]) {
    if !bytes.is_empty() {
        tell(&String::from_utf8_lossy(bytes));
    }
}

/// How many bytes can be told already: not the beginning of a mark, nor of a character.
fn whole(bytes: &[u8]) -> usize {
    let marked = (1..MARK.len()).rev().find(|n| bytes.ends_with(&MARK[..*n])).unwrap_or(0);
    let bytes = &bytes[..bytes.len() - marked];
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_characters_are_not_told_in_halves() {
        assert_eq!(whole(b"abc"), 3);
        assert_eq!(whole(b"abc\0the c"), 3);
        assert_eq!(whole("aé".as_bytes().split_at(2).0), 1);
        assert_eq!(whole(b"a\xffb"), 3);
    }
}
