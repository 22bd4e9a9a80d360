//! Streams and events. Work has run when its call returns, so that there is nothing to wait for.

use super::code::Code;
use super::context::handle;
use super::put;
use super::state::{Object, healthy, state, synchronised};
use std::ffi::c_int;
use std::time::Instant;

fn create(priority: c_int) -> Result<usize, Code> {
    healthy()?;
    Ok(state().insert(Object::Stream(priority)))
}

/// Waiting for a stream: its device's fault shows here.
fn wait(stream: usize) -> Result<(), Code> {
    synchronised()?;
    let state = state();
    state.stream(stream)?;
    if state.capture_of(stream).is_some() { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

fn record(event: usize, stream: usize) -> Result<(), Code> {
    healthy()?;
    let mut state = state();
    state.stream(stream)?;
    let capture = state.capture_of(stream);
    match state.get_mut(event)? {
        Object::Event(when, captured) => {
            *captured = capture;
            if capture.is_none() {
                *when = Some(Instant::now());
            }
            Ok(())
        }
        _ => Err(Code::INVALID_HANDLE),
    }
}

fn event(handle: usize) -> Result<Option<Instant>, Code> {
    match state().get(handle)? {
        Object::Event(when, _) => Ok(*when),
        _ => Err(Code::INVALID_HANDLE),
    }
}

fn elapsed(from: usize, to: usize) -> Result<f32, Code> {
    healthy()?;
    match (event(from)?, event(to)?) {
        (Some(from), Some(to)) => Ok((to.saturating_duration_since(from)).as_secs_f32() * 1e3),
        _ => Err(Code::INVALID_HANDLE),
    }
}

super::api! {
    fn cuStreamCreate(to: *mut usize, _flags: u32) {
        put(to, create(0)?)
    }

    fn cuStreamCreateWithPriority(to: *mut usize, _flags: u32, priority: c_int) {
        put(to, create(priority)?)
    }

    fn cuStreamGetPriority(stream: usize, priority: *mut c_int) {
        let found = match state().get(stream) {
            Ok(Object::Stream(priority)) => *priority,
            _ => 0,
        };
        put(priority, found)
    }

    fn cuStreamGetFlags(stream: usize, flags: *mut u32) {
        state().stream(stream)?;
        put(flags, 0)
    }

    fn cuStreamDestroy_v2(stream: usize) {
        match state().remove(stream)? {
            Object::Stream(_) => Ok(()),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    fn cuStreamSynchronize(stream: usize) {
        wait(stream)
    }

    fn cuStreamQuery(stream: usize) {
        wait(stream)
    }

    fn cuStreamGetCtx(stream: usize, context: *mut usize) {
        state().stream(stream)?;
        put(context, handle(super::state::current()?))
    }

    fn cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) {
        healthy()?;
        let mut state = state();
        state.stream(stream)?;
        let captured = match state.get(event)? {
            Object::Event(_, captured) => *captured,
            _ => return Err(Code::INVALID_HANDLE),
        };
        // Whoever waits for work of a capture takes part in it.
        if let Some(root) = captured.filter(|root| *root != stream && state.captures.contains_key(root)) {
            state.joined.insert(stream, root);
        }
        Ok(())
    }

    fn cuStreamAttachMemAsync(stream: usize, _address: u64, _bytes: usize, _flags: u32) {
        state().stream(stream)
    }

    fn cuEventCreate(to: *mut usize, _flags: u32) {
        healthy()?;
        put(to, state().insert(Object::Event(None, None)))
    }

    fn cuEventRecord(event: usize, stream: usize) {
        record(event, stream)
    }

    fn cuEventRecordWithFlags(event: usize, stream: usize, _flags: u32) {
        record(event, stream)
    }

    fn cuEventSynchronize(handle: usize) {
        synchronised()?;
        event(handle).map(|_| ())
    }

    fn cuEventQuery(handle: usize) {
        synchronised()?;
        event(handle).map(|_| ())
    }

    fn cuEventElapsedTime(milliseconds: *mut f32, from: usize, to: usize) {
        put(milliseconds, elapsed(from, to)?)
    }

    fn cuEventElapsedTime_v2(milliseconds: *mut f32, from: usize, to: usize) {
        put(milliseconds, elapsed(from, to)?)
    }

    fn cuEventDestroy_v2(handle: usize) {
        match state().remove(handle)? {
            Object::Event(..) => Ok(()),
            _ => Err(Code::INVALID_HANDLE),
        }
    }
}
