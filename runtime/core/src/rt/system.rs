//! Time, arguments, the environment, progress.

use super::{rows, settle};
use crate::context::{Context, Stop, Viewed, interrupted};
use crate::dry_run;
use crate::fault::Fault;
use crate::plot;
use crate::value::{StrObj, TypeTable, new_list, new_str};
use crate::world;
use crate::{cuda, opencl};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_0 time_now time_perf sys_dir;
        takes_1 sys_args;
        takes_2 time_sleep sys_exit env_get read_line;
        takes_3 progress;
    }
}

/// Seconds since 1970.
extern "C" fn time_now(cx: &mut Context) -> f64 {
    clock(cx, "time", || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64()))
}

/// A clock's time, behind everything that the program has started on a GPU; of several processes the first one's.
fn clock(cx: &mut Context, question: &str, read: impl FnOnce() -> f64) -> f64 {
    cuda::wait();
    opencl::wait();
    match world::world() {
        None => read(),
        Some(w) => settle(cx, 0, w.ask_float(question, read)),
    }
}

/// Seconds of a clock that never goes back.
extern "C" fn time_perf(cx: &mut Context) -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    clock(cx, "seconds", || START.get_or_init(Instant::now).elapsed().as_secs_f64())
}

/// Waits in short pieces, so that an interrupt is seen.
extern "C" fn time_sleep(cx: &mut Context, seconds: f64, span: i64) {
    const PIECE: Duration = Duration::from_millis(20);
    cx.flush();
    let wait = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(if seconds > 0.0 {
        Duration::MAX
    } else {
        Duration::ZERO
    });
    let start = Instant::now();
    while let Some(left) = wait.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) {
        if cx.is_interrupted() {
            return cx.fail(interrupted(), span as u32);
        }
        std::thread::sleep(left.min(PIECE));
    }
}

extern "C" fn sys_dir(cx: &mut Context) -> u64 {
    new_str(cx.dir.as_str())
}

extern "C" fn sys_args(cx: &mut Context, _ty: i64) -> u64 {
    let words = cx.args.iter().map(|a| new_str(a.as_str())).collect();
    new_list(&cx.types, TypeTable::STR, words)
}

extern "C" fn sys_exit(cx: &mut Context, code: i64, _span: i64) {
    cx.stop(Stop::Exit(code as i32));
}

/// The value of an environment variable, or the default; of several processes the first one's.
extern "C" fn env_get(cx: &mut Context, name: &StrObj, default: &StrObj) -> u64 {
    let valid = !name.text().is_empty() && !name.text().contains(['=', '\0']);
    let value = || if valid { std::env::var_os(name.text()) } else { None };
    let text = || value().map_or_else(|| default.text().to_owned(), |v| v.to_string_lossy().into_owned());
    let asked = match world::world() {
        None => Ok(text()),
        Some(w) => {
            let answer = w.ask(name.text(), || text().into_bytes());
            answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    // A failure stops the program; there is a text all the same.
    new_str(settle(cx, 0, asked))
}

/// The next line of the standard input, with its end, behind a prompt; empty where there is none. Of several processes the
/// first one reads it.
extern "C" fn read_line(cx: &mut Context, prompt: &StrObj, span: i64) -> u64 {
    cx.print(prompt.text(), span as u32);
    cx.flush();
    let read = match world::world() {
        None => line_of_input(cx),
        Some(w) => {
            let mut failed = None;
            let answer = w.ask("a line of the standard input", || {
                line_of_input(cx).unwrap_or_else(|fault| {
                    failed = Some(fault);
                    vec![]
                })
            });
            failed.map_or(answer, Err)
        }
    };
    let text = read.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Fault::new(
                707,
                format!("the standard input is not UTF-8 text: byte {at} of a line is not part of a character"),
            )
        })
    });
    new_str(settle(cx, span, text))
}

/// No more than the line is taken, so that what follows stays for who reads it next; with looks at an interrupt while nothing
/// comes.
fn line_of_input(cx: &Context) -> Result<Vec<u8>, Fault> {
    /// What no line of text is longer than.
    const LONGEST: usize = 1 << 24;
    const LOOK_MS: i32 = 50;
    let fault = |e: std::io::Error| Fault::new(706, format!("the standard input cannot be read: {e}"));
    let mut line = vec![];
    if dry_run::is_on() {
        return Ok(line);
    }
    // The buffer of `std::io::stdin` is that of a session whose inputs are piped.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(fault)?);
    let mut look = Look::of(&input);
    let mut bytes = vec![0; 1 << 16];
    while !line.ends_with(b"\n") {
        let mut asked = libc::pollfd { fd: input.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which lives through the call.
        let ready = unsafe { libc::poll(&mut asked, 1, LOOK_MS) };
        if cx.is_interrupted() {
            return Err(interrupted());
        }
        if ready == 0 {
            continue;
        }
        let waiting = look.waiting(&input, &mut bytes);
        let of_line = bytes[..waiting].iter().position(|b| *b == b'\n').map_or(waiting, |end| end + 1);
        match input.read(&mut bytes[..of_line.max(1)]) {
            Ok(0) => break,
            Ok(n) if line.len() + n > LONGEST => {
                return Err(Fault::new(707, format!("a line of the standard input is longer than {LONGEST} bytes")));
            }
            Ok(n) => line.extend(&bytes[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return Err(fault(e)),
        }
    }
    Ok(line)
}

/// How one sees what waits in an input without taking it.
enum Look {
    /// A file is read at a place.
    File,
    /// What is in a pipe is copied into another one, and read there.
    #[cfg(target_os = "linux")]
    Pipe(std::io::PipeReader, std::io::PipeWriter),
    /// One byte is taken at a time.
    None,
}

impl Look {
    fn of(input: &File) -> Look {
        match input.metadata().map(|meta| meta.file_type()) {
            Ok(kind) if kind.is_file() => Look::File,
            #[cfg(target_os = "linux")]
            Ok(kind) if kind.is_fifo() => std::io::pipe().map_or(Look::None, |(from, to)| Look::Pipe(from, to)),
            _ => Look::None,
        }
    }

    /// Fills `bytes` with what comes next, and says how much of it there is; 0 where that cannot be seen.
    fn waiting(&mut self, mut input: &File, bytes: &mut [u8]) -> usize {
        match self {
            Look::File => input.stream_position().and_then(|at| input.read_at(bytes, at)).unwrap_or(0),
            #[cfg(target_os = "linux")]
            Look::Pipe(from, to) => {
                // SAFETY: two open pipes, which live through the call; no memory of the program is touched.
                let n = unsafe { libc::tee(input.as_raw_fd(), to.as_raw_fd(), bytes.len(), libc::SPLICE_F_NONBLOCK) };
                let n = usize::try_from(n).unwrap_or(0).min(bytes.len());
                from.read_exact(&mut bytes[..n]).map_or(0, |()| n)
            }
            Look::None => 0,
        }
    }
}

/// A bar on one line of a terminal, or in a notebook.
extern "C" fn progress(cx: &mut Context, current: i64, total: i64, text: &StrObj) {
    if !world::is_first() || !cx.has_viewer() && !std::io::stderr().is_terminal() {
        return;
    }
    let Some(progress) = cx.turn(current, total, text.text()) else { return };
    if cx.has_viewer() {
        return cx.view(Viewed::Progress(progress), 0);
    }
    cx.draw_bar(&plot::bar(&progress), !progress.ends());
}
