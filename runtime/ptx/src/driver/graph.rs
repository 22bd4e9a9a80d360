//! Captures and graphs: work that is kept and run again.

use super::code::Code;
use super::put;
use super::state::{Capture, Object, healthy, state};
use super::work::perform;
use std::sync::Arc;

super::api! {
    fn cuStreamBeginCapture_v2(stream: usize, _mode: u32) {
        let device = healthy()?;
        let mut state = state();
        state.stream(stream)?;
        // The stream that everyone shares cannot be captured, nor one that is.
        if stream == 0 || stream == 1 || state.capture_of(stream).is_some() {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        state.captures.insert(stream, Capture { device, nodes: Vec::new() });
        Ok(())
    }

    fn cuStreamEndCapture(stream: usize, graph: *mut usize) {
        let mut state = state();
        state.stream(stream)?;
        if state.joined.contains_key(&stream) {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        let Capture { nodes, .. } = state.captures.remove(&stream).ok_or(Code::INVALID_VALUE)?;
        state.joined.retain(|_, root| *root != stream);
        put(graph, state.insert(Object::Graph(Arc::new(nodes))))
    }

    fn cuStreamIsCapturing(stream: usize, status: *mut u32) {
        let state = state();
        state.stream(stream)?;
        put(status, u32::from(state.capture_of(stream).is_some()))
    }

    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) {
        put(mode, 0)
    }

    fn cuGraphCreate(graph: *mut usize, _flags: u32) {
        healthy()?;
        put(graph, state().insert(Object::Graph(Arc::default())))
    }

    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, _flags: u64) {
        healthy()?;
        let mut state = state();
        let Object::Graph(nodes) = state.get(graph)?.clone() else { return Err(Code::INVALID_HANDLE) };
        put(executable, state.insert(Object::GraphExec(nodes)))
    }

    fn cuGraphUpload(_executable: usize, stream: usize) {
        state().stream(stream)
    }

    fn cuGraphLaunch(executable: usize, stream: usize) {
        let device = healthy()?;
        let nodes = {
            let mut state = state();
            state.stream(stream)?;
            let Object::GraphExec(nodes) = state.get(executable)?.clone() else { return Err(Code::INVALID_HANDLE) };
            if let Some(root) = state.capture_of(stream) {
                if let Some(capture) = state.captures.get_mut(&root) {
                    capture.nodes.extend(nodes.iter().cloned());
                }
                return Ok(());
            }
            nodes
        };
        for node in nodes.iter() {
            // What follows a fault does not run.
            if state().is_faulty(device) {
                break;
            }
            perform(device, node)?;
        }
        Ok(())
    }

    fn cuGraphExecDestroy(executable: usize) {
        match state().remove(executable)? {
            Object::GraphExec(_) => Ok(()),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    fn cuGraphDestroy(graph: usize) {
        match state().remove(graph)? {
            Object::Graph(_) => Ok(()),
            _ => Err(Code::INVALID_HANDLE),
        }
    }
}
