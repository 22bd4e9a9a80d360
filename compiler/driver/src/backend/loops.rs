//! Loops: a plan of the body, which runs in every turn.

use super::{Backend, BackendError, exchanges, kernel_costs, operand};
use crate::native_kernels::{Source, gather};
use std::sync::{Arc, Mutex};
use tessera_abi::plan::{Plan, Stop};
use tessera_ir::graph::{Graph, NodeId, NodeType};
use tessera_ir::group::MemoryPlan;
use tessera_ops::prim::Prim;
use tessera_runtime::execute::{Argument, PlanError, Workspace, execute};
use tessera_runtime::fault::Fault;
use tessera_runtime::native::{NativeFn, Operand};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::Tensor;

impl Backend {
    /// What a loop fills, and how; `operands`: their types, and where they come from. Adds to the counts of the plan.
    pub(super) fn looped(
        &self,
        graph: &Graph,
        id: NodeId,
        memory: &MemoryPlan,
        pool: &Arc<Pool>,
        plan: &mut Plan,
        (types, sources): (Vec<NodeType>, Vec<Source>),
    ) -> Result<(Vec<Operand>, Arc<NativeFn>), BackendError> {
        let lacks = || BackendError::Internal("a loop without a body".into());
        let Prim::Scan { body, carry, sequences, trips } = graph.node(id).prim else { return Err(lacks()) };
        let body = graph.bodies.get(body as usize).ok_or_else(lacks)?;
        let parts: Vec<(usize, NodeId)> = graph
            .ids()
            .filter(|&p| graph.node(p).operands.first() == Some(&id))
            .filter_map(|p| if let Prim::Get { index } = graph.node(p).prim { Some((index, p)) } else { None })
            .filter(|(_, p)| memory.place[p.0 as usize].is_some())
            .collect();
        let outputs = parts.iter().map(|&(_, p)| operand(graph, memory, p)).collect();
        let indices: Vec<usize> = parts.iter().map(|p| p.0).collect();
        let body = tessera_graph::optimise(body);
        let of_turn = self.plan_on(&body, pool)?;
        if !exchanges::in_order(&body, &of_turn) {
            return Err(BackendError::Internal("the exchanges of a loop lost their order".into()));
        }
        kernel_costs::add_times(&mut plan.counts, &of_turn.counts, trips);
        let spec = Loop { body: of_turn, types, carry, sequences, trips };
        Ok((outputs, turns(spec, sources, indices, pool.clone())))
    }
}

/// A fault as a step reports it.
pub fn refused(fault: Fault) -> Stop {
    Stop { code: fault.code, notes: fault.notes, ..fault.message.into() }
}

/// A loop over a compiled body.
struct Loop {
    body: Plan,
    types: Vec<NodeType>,
    carry: usize,
    sequences: usize,
    trips: u64,
}

fn turns(spec: Loop, sources: Vec<Source>, results: Vec<usize>, pool: Arc<Pool>) -> Arc<NativeFn> {
    let work = Mutex::new(Workspace::default());
    Arc::new(move |inputs: &[&[u8]], outputs: &mut [&mut [u8]], words: &[u64]| {
        let words: Vec<[u8; 8]> = words.iter().map(|w| w.to_le_bytes()).collect();
        let operands = gather(&sources, &spec.types, inputs, &words);
        let tensor = |ty: &NodeType, shape: &[u64], bytes: &[u8]| {
            Tensor::from_bytes(ty.dtype, shape, bytes).map_err(|e| refused(Fault::from(e)))
        };
        let mut state = vec![];
        let mut constants = vec![];
        for (i, (bytes, ty)) in operands.iter().zip(&spec.types).enumerate() {
            if i < spec.carry {
                state.push(tensor(ty, &ty.shape, bytes)?);
            } else if i >= spec.carry + spec.sequences {
                constants.push(tensor(ty, &ty.shape, bytes)?);
            }
        }
        let mut work = work.lock().unwrap_or_else(|e| e.into_inner());
        for t in 0..spec.trips as usize {
            let mut args: Vec<Argument> = std::mem::take(&mut state).into_iter().map(Argument::Tensor).collect();
            for (bytes, ty) in operands.iter().zip(&spec.types).skip(spec.carry).take(spec.sequences) {
                let shape = ty.shape.get(1..).unwrap_or(&[]);
                let one = bytes.len() / spec.trips.max(1) as usize;
                args.push(Argument::Tensor(tensor(ty, shape, &bytes[t * one..(t + 1) * one])?));
            }
            args.extend(constants.iter().cloned().map(Argument::Tensor));
            let mut made = execute(&spec.body, args, &pool, &mut work).map_err(|e| match e {
                PlanError::Step(stop) => stop,
                PlanError::Memory(e) => refused(Fault::from(e)),
                PlanError::Interrupted => "interrupted".to_owned().into(),
            })?;
            for (out, &index) in outputs.iter_mut().zip(&results).filter(|(_, i)| **i >= spec.carry) {
                let bytes = made[index].bytes();
                out[t * bytes.len()..(t + 1) * bytes.len()].copy_from_slice(bytes);
            }
            made.truncate(spec.carry);
            state = made;
        }
        for (out, &index) in outputs.iter_mut().zip(&results).filter(|(_, i)| **i < spec.carry) {
            out.copy_from_slice(state[index].bytes());
        }
        Ok(())
    })
}
