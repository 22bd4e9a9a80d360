//! E0412: a stage of a pipeline that does not go over the rows of its argument one by one.
//!
//! The stage is checked once more, as the code of one of the devices that the rows are split over: what mixes rows is what
//! would need other devices there. Nothing of that check is kept but what it found.

use super::Request;
use super::args::Value;
use super::cx::Cx;
use super::per_device::PerDevice;
use crate::db;
use std::collections::HashSet;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Mesh, Own, Sharding, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::{FnRefTy, Ty};
use tessera_types::tensor::whole;

/// The axis that stands for the microbatches. No program can name it.
const ROWS: &str = "rows of a microbatch";

/// Instances that are looked at for one stage, at most.
const INSTANCES_MAX: usize = 1000;

/// A type on one device but for what it has of rows, captured values of functions included.
fn on_one_device(ty: &Ty) -> Ty {
    match ty {
        Ty::FnRef(r) => {
            let captures = r.captures.iter().map(|(name, t)| (name.clone(), on_one_device(t))).collect();
            Ty::FnRef(Arc::new(FnRefTy { captures, ..FnRefTy::clone(r) }))
        }
        ty => layouts::with_tensors(ty, &mut |t| match t.sharding.own(ROWS) {
            Some(_) => t.clone(),
            None => TensorType { sharding: Sharding::default(), ..t.clone() },
        }),
    }
}

impl Cx<'_> {
    /// Whether this is the check of a stage for the rows that it mixes: there is no mesh but that of the microbatches.
    pub fn of_rows(&self) -> bool {
        self.local.as_ref().is_some_and(|l| l.mesh.size(ROWS).is_some())
    }

    /// The value as that check sees it.
    pub fn seen_by_rows(&self, x: TExpr) -> TExpr {
        if self.of_rows() { TExpr { ty: on_one_device(&x.ty), ..x } } else { x }
    }

    /// E0412 for a stage that mixes rows. Whatever else is wrong with it, its own check says.
    pub fn rows_mixed(&mut self, stage: &TExpr, t: &TensorType, microbatches: u64) -> Option<Diagnostic> {
        let Ty::FnRef(r) = on_one_device(&stage.ty) else { return None };
        if self.local.is_some() || microbatches < 2 {
            return None;
        }
        let span = stage.span;
        let mesh = Arc::new(Mesh { axes: vec![(ROWS.to_owned(), microbatches)] });
        let sharding = Sharding::default().with_own(ROWS, Some(Own::Block(0)), &mesh);
        let x = TExpr { kind: TKind::None, ty: Ty::Tensor(TensorType { sharding, ..t.clone() }), span };
        let before = (self.diagnostics.len(), self.requests.len());
        let told = self.guessing;
        self.local = Some(PerDevice { mesh, sizes: vec![], blocks: vec![] });
        let callee = TExpr { ty: Ty::FnRef(r.clone()), ..stage.clone() };
        let args = vec![Value { name: None, value: x }];
        let ret = self.perhaps(|cx| cx.block(|cx| cx.call_function(&r, Some(callee), args, span)).1.ty);
        self.local = None;
        self.guessing = told;
        let mut found = self.diagnostics.split_off(before.0);
        let requests = self.requests.split_off(before.1);
        self.said_inside(&requests, &mut found);
        let text = "this stage mixes the rows of a microbatch";
        let d = Diagnostic::new(Code::E0412, span, text)
            .note("a pipeline cuts the rows of its argument into microbatches, and a stage sees those of one alone")
            .note("so the result would depend on how many microbatches there are");
        let help = "compute what needs all rows before the pipeline or behind it";
        if let Some(inner) = found.iter().find(|d| matches!(d.code, Code::E0405 | Code::E0411)) {
            return Some(d.with_label(inner.span, "this needs all rows").help(help));
        }
        let own = |t: &TensorType| t.sharding.own(ROWS).map(|own| (own, t.rank()));
        let (own, rank) = layouts::tensors(&ret).iter().find_map(own)?;
        let how = match own {
            Own::Block(0) | Own::Any | Own::Zero => return None,
            // E0207 says that it is one number.
            _ if rank == 0 => return None,
            Own::Block(dim) => format!("it gives the rows along dim {dim} of {rank}"),
            Own::Mixed => "a row of what it gives is made of other rows than its own".to_owned(),
            part => format!("it gives {} over the rows", whole(part)),
        };
        Some(d.note(how).help(help))
    }

    /// What is said inside of the instances that are asked for.
    fn said_inside(&mut self, requests: &[Request], found: &mut Vec<Diagnostic>) {
        let mut seen = HashSet::new();
        let inst = |r: &Request| self.callees.get_index(r.inst.0 as usize).map(|(inst, _)| *inst);
        let mut open: Vec<db::InstRef> = requests.iter().filter_map(inst).collect();
        while let Some(inst) = open.pop() {
            if seen.len() >= INSTANCES_MAX || !seen.insert(inst) {
                continue;
            }
            let Some(checked) = self.checked_inst(inst) else { continue };
            found.extend(checked.diagnostics.iter().cloned());
            let called = |r: &Request| checked.tables.callees.get(r.inst.0 as usize).map(|c| c.inst);
            open.extend(checked.requests.iter().filter_map(called));
        }
    }
}
