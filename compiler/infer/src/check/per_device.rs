//! `@dist.local`: functions that say what one device does.
//!
//! The body is checked at the types of the blocks. What differs from device to device along an axis
//! says so in its layout ([`Monoid::Each`]), so every operator's rule carries it along.

use super::annots::SigTypes;
use super::cx::{Cx, error_at};
use super::inst::Callee;
use super::misplaced::axes;
use crate::members::dotted;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Mesh, Monoid, Own, Sharding, Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::{FnRefTy, TensorPattern, Ty};
use tessera_resolve::functions::FnSig;
use tessera_types::unify::{Coerce, Role, bind_signature, param_mismatch_diagnostic};

/// What per-device code knows of the devices.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PerDevice {
    pub mesh: Arc<Mesh>,
    /// How many devices there are along each axis, where the mesh is not known yet.
    pub sizes: Vec<(String, Size)>,
    /// The sizes of dims of blocks, by axis, in a signature that is checked for any mesh.
    pub blocks: Vec<(String, Size)>,
}

/// Whether a function is decorated with `@dist.local`.
pub fn is_local(sig: &FnSig) -> bool {
    let path = |e| dotted(e).is_some_and(|p| p == "dist.local" || p == "local");
    sig.decorators.iter().any(path)
}

/// A declared type without its layouts.
fn plain(ty: &Ty) -> Ty {
    match ty {
        Ty::TensorPattern(p) => Ty::TensorPattern(TensorPattern { sharding: Sharding::default(), ..p.clone() }),
        ty => layouts::unsharded(ty),
    }
}

/// The types of a signature as those of blocks: their layouts are said of the whole tensors.
pub fn of_blocks(types: SigTypes) -> SigTypes {
    let params = types.params.iter().map(|p| p.as_ref().map(plain)).collect();
    let ret = types.ret.as_ref().map(plain);
    SigTypes { params, ret, ..types }
}

/// The type of a block: each device along the axes has its own.
fn block(shape: Vec<Size>, whole: &TensorType, mesh: &Arc<Mesh>) -> TensorType {
    let own = |a: &String| Monoid::Each(whole.sharding.dim_of(a).map_or(Own::Any, Own::Block));
    let partial: Vec<(Monoid, String)> = axes(&whole.sharding).map(|a| (own(a), a.clone())).collect();
    let mesh = (!partial.is_empty()).then(|| mesh.clone());
    let sharding = Sharding { dims: vec![], partial, mesh }.normal(shape.len());
    TensorType { shape, dtype: whole.dtype, sharding }
}

impl Cx<'_> {
    /// How many devices lie along an axis. E0403 where the mesh has no such axis.
    pub fn devices_along(&mut self, axis: &str, span: Span) -> Option<Size> {
        let local = self.local.clone()?;
        if !local.mesh.is_unknown() {
            return self.known_axis(&local.mesh, axis, span).map(|n| Size::constant(n as i64));
        }
        if let Some((_, size)) = local.sizes.iter().find(|(a, _)| a == axis) {
            return Some(size.clone());
        }
        let size = self.sizes.rigid(axis);
        if let Some(local) = &mut self.local {
            local.sizes.push((axis.into(), size.clone()));
        }
        Some(size)
    }

    /// The devices of a mesh that only a signature names.
    pub fn unknown_devices(&mut self, types: &SigTypes) -> PerDevice {
        let mut names = BTreeSet::new();
        for ty in types.params.iter().flatten().chain(&types.ret) {
            match ty {
                Ty::TensorPattern(p) => names.extend(axes(&p.sharding).cloned()),
                ty => layouts::tensors(ty).iter().for_each(|t| names.extend(axes(&t.sharding).cloned())),
            }
        }
        let sizes = names.iter().map(|a| (a.clone(), self.sizes.rigid(a))).collect();
        PerDevice { mesh: Arc::new(Mesh::unknown(names)), sizes, blocks: vec![] }
    }

    /// The parameters of per-device code at its annotations.
    pub fn own_blocks(&self, types: &SigTypes, mesh: &Arc<Mesh>) -> Vec<Ty> {
        let of = |t: &TensorType| block(t.shape.clone(), t, mesh);
        let param = |ty: &Option<Ty>| layouts::with_tensors(ty.as_ref().unwrap_or(&Ty::Error), &mut |t| of(t));
        types.params.iter().map(param).collect()
    }

    /// E0408 for a parameter that is partial: devices hold no summands.
    pub fn whole_params(&mut self, sig: &FnSig, types: &SigTypes) -> bool {
        let partial = |ty: &Ty| match ty {
            Ty::Tensor(t) => t.sharding.partial.first().cloned(),
            Ty::TensorPattern(p) => p.sharding.partial.first().cloned(),
            _ => None,
        };
        let found = sig.params.iter().zip(&types.params).find_map(|(p, ty)| Some((p, partial(ty.as_ref()?)?)));
        let Some((param, (monoid, axis))) = found else { return true };
        let at = param.ty.as_ref().map_or(param.name.span, |t| t.span);
        let text = format!("a parameter of per-device code is a block, and `{monoid}@{axis}` is none");
        let d = Diagnostic::new(Code::E0408, at, text);
        self.report(
            d.help(format!("complete the argument before the call: `dist.collective.all_reduce(x, axis=\"{axis}\")`")),
        );
        false
    }

    /// A call from ordinary code: of whole tensors, of which each device gets its blocks.
    pub fn call_local(
        &mut self,
        r: &FnRefTy,
        sig: &Arc<FnSig>,
        types: SigTypes,
        callee: Option<TExpr>,
        values: Vec<TExpr>,
        span: Span,
    ) -> TExpr {
        let Some(declared) = types.ret.clone() else {
            let text = format!("the result of `{}` has no annotation: how it lies is not known", sig.name);
            let d = Diagnostic::new(Code::E0408, sig.head, text)
                .with_label(span, "called here")
                .help("write it behind the parameters: `-> Tensor[B@dp, D, f32]` is a block for each device of `dp`, `Tensor[D, f32]` the same on all");
            return self.fail(d);
        };
        if !self.whole_params(sig, &types) {
            return error_at(span);
        }
        let Some(devices) = self.devices_of(sig, &values, span) else { return error_at(span) };
        let mut cut = Cut { devices: &devices, known: vec![] };
        let (mut wholes, mut blocks) = (vec![], vec![]);
        for (i, value) in values.into_iter().enumerate() {
            let declared = types.params.get(i).and_then(Option::as_ref);
            let (name, at) = (&sig.params[i].name.text, sig.params[i].ty.as_ref().map_or(Span::NONE, |t| t.span));
            let Some(whole) = self.as_declared(value, declared, (name, at), &devices.mesh) else {
                return error_at(span);
            };
            let Some(ty) = self.blocks_of(&whole, &mut cut) else { return error_at(span) };
            wholes.push(whole);
            blocks.push(ty);
        }
        let stated = types.ret.clone();
        let types = of_blocks(types);
        let vars: BTreeSet<SizeVar> = types.vars.iter().cloned().collect();
        let annotated: Vec<usize> = (0..wholes.len()).filter(|&i| types.params[i].is_some()).collect();
        let own: Vec<Ty> = annotated.iter().filter_map(|&i| types.params[i].clone()).collect();
        let found: Vec<Ty> = annotated.iter().map(|&i| blocks[i].clone()).collect();
        let spans: Vec<Span> = annotated.iter().map(|&i| wholes[i].span).collect();
        let bindings = match bind_signature(&mut self.sizes, &vars, &own, &found, &spans) {
            Ok(b) => b,
            Err(p) => {
                let param = |&i: &usize| {
                    let p = &sig.params[i];
                    (p.name.text.clone(), p.ty.as_ref().map_or(p.name.span, |t| t.span))
                };
                let params: Vec<(Arc<str>, Span)> = annotated.iter().map(param).collect();
                let d = param_mismatch_diagnostic(&p, &sig.name, &params, &spans);
                return self.fail(d.note("in per-device code sizes are those of blocks"));
            }
        };
        for (k, &i) in annotated.iter().enumerate() {
            if matches!(bindings.coerces.get(k), Some(Coerce::None | Coerce::Check | Coerce::Sizes)) {
                continue;
            }
            // What is no tensor on a mesh converts as in any call.
            let value = std::mem::replace(&mut wholes[i], error_at(span));
            let role = Role::Argument { function: sig.name.to_string(), param: sig.params[i].name.text.to_string() };
            let at = sig.params[i].ty.as_ref().map_or(Span::NONE, |t| t.span);
            wholes[i] = self.expect(value, &bindings.params[k], &sig.params[i].name.text, at, role);
            blocks[i] = wholes[i].ty.clone();
        }
        if wholes.iter().any(|v| v.ty.is_error()) {
            return error_at(span);
        }
        let mesh = devices.mesh.clone();
        let (data, canon) = self.instance_on(&Callee::of(r), Some(&blocks), Some(devices.clone()));
        let Some(checked) = self.check_callee(&data, &sig.name, span) else { return error_at(span) };
        if checked.open {
            self.guessing = true;
            self.need(&data, span);
            return error_at(span);
        }
        let pairs = checked.sig_vars.iter().zip(&types.vars);
        let sizes: BTreeMap<SizeVar, Size> =
            pairs.filter_map(|(theirs, ours)| Some((theirs.clone(), bindings.sizes.get(ours)?.clone()))).collect();
        let gives = self.from_callee(&checked.ret.clone(), &canon, &sizes);
        let inst = self.need(&data, span);
        if let Some(request) = self.requests.last_mut() {
            request.graph = true;
        }
        let at = sig.ret.as_ref().map_or(sig.head, |e| e.span);
        let Some(ret) = self.whole_of(&gives, &stated.unwrap_or(declared), &cut, (at, span)) else {
            return error_at(span);
        };
        let args = wholes.iter().map(|v| v.ty.clone()).collect();
        let call = LocalCall { name: sig.name.clone(), mesh, args, ret: ret.clone() };
        let callee = (!r.captures.is_empty()).then_some(callee).flatten();
        let of = Box::new(TFunction::Direct { inst, callee });
        let f = Box::new(TFunction::Derived { step: Step::Local(Arc::new(call)), of, bound: vec![] });
        TExpr { kind: TKind::Derive { f, args: wholes }, ty: ret, span }
    }

    /// The mesh that the arguments lie on. E0408 where they lie on none, E0404 where on several.
    fn devices_of(&mut self, sig: &FnSig, values: &[TExpr], span: Span) -> Option<PerDevice> {
        let mut found: Option<(Arc<Mesh>, Span)> = None;
        for value in values {
            for mesh in layouts::tensors(&value.ty).into_iter().filter_map(|t| t.sharding.mesh) {
                match &found {
                    Some((first, at)) if *first != mesh => {
                        let d = Diagnostic::new(Code::E0404, value.span, "the arguments lie on different meshes")
                            .here(mesh.to_string())
                            .with_label(*at, first.to_string())
                            .help_about("take one off its mesh: `dist.gather({x})`", &[("x", value.span)]);
                        self.report(d);
                        return None;
                    }
                    Some(_) => {}
                    None => found = Some((mesh, value.span)),
                }
            }
        }
        let Some((mesh, _)) = found else {
            let text = format!("`{}` says what one device does, and no argument lies on a mesh", sig.name);
            let d = Diagnostic::new(Code::E0408, span, text)
                .note("the devices are those of the mesh that the arguments lie on")
                .help("lay an argument out: `dist.shard(x, spec, mesh=mesh)`");
            self.report(d);
            return None;
        };
        let sizes = match mesh.is_unknown() {
            true => mesh.axes.iter().map(|(a, _)| (a.clone(), self.axis_size(a))).collect(),
            false => vec![],
        };
        Some(PerDevice { mesh, sizes, blocks: vec![] })
    }

    /// How many devices lie along an axis of a mesh that this body does not know.
    fn axis_size(&mut self, axis: &str) -> Size {
        if let Some((_, size)) = self.axis_sizes.iter().find(|(a, _)| a == axis) {
            return size.clone();
        }
        let size = self.sizes.rigid(axis);
        self.axis_sizes.push((axis.into(), size.clone()));
        size
    }

    /// The argument as its parameter says it lies; what is everywhere in full is cut for free. E0408 where
    /// it lies in another way.
    fn as_declared(
        &mut self,
        value: TExpr,
        declared: Option<&Ty>,
        (name, at): (&Arc<str>, Span),
        mesh: &Arc<Mesh>,
    ) -> Option<TExpr> {
        let wanted = match declared {
            Some(Ty::Tensor(t)) => Some((t.sharding.clone(), 0)),
            Some(Ty::TensorPattern(p)) => match &value.ty {
                Ty::Tensor(t) => Some((p.sharding.clone(), t.rank().saturating_sub(p.tail.len()))),
                _ => None,
            },
            _ => None,
        };
        let label = |d: Diagnostic| if at == Span::NONE { d } else { d.with_label(at, "annotated here") };
        if let Some((partial, t)) =
            layouts::tensors(&value.ty).iter().find_map(|t| Some((t.sharding.partial.first()?.clone(), t.clone())))
        {
            let (monoid, axis) = partial;
            if monoid.position().is_some() {
                let text =
                    format!("`{name}` is a block that each device has, and this lies at one position of `{axis}`");
                let d = Diagnostic::new(Code::E0408, value.span, text)
                    .here(t.to_string())
                    .help(format!("bring it to all: `dist.collective.broadcast(x, axis=\"{axis}\")`"));
                self.report(label(d));
                return None;
            }
            let d = Diagnostic::new(
                Code::E0408,
                value.span,
                format!(
                    "`{name}` is a block, and this is partial over `{axis}`: its {}s are not kept apart",
                    monoid.name()
                ),
            )
            .here(t.to_string())
            .help_about(
                &format!("complete it first: `dist.collective.all_reduce({{x}}, axis=\"{axis}\")`"),
                &[("x", value.span)],
            );
            self.report(label(d));
            return None;
        }
        let (Some((wanted, skip)), Ty::Tensor(t)) = (wanted, value.ty.clone()) else { return Some(value) };
        for axis in wanted.dims.iter().flatten() {
            self.known_axis(mesh, axis, if at == Span::NONE { value.span } else { at })?;
        }
        let rank = t.rank();
        if wanted.dims.len() + skip > rank && !wanted.dims.is_empty() {
            // The ranks differ, which is said of the sizes.
            return Some(value);
        }
        let leading = (0..skip).map(|d| t.sharding.axes(d).to_vec());
        let dims: Vec<Vec<String>> = leading.chain((skip..rank).map(|d| wanted.axes(d - skip).to_vec())).collect();
        let to = Sharding { dims, partial: vec![], mesh: Some(mesh.clone()) }.normal(rank);
        if to.dims == t.sharding.dims {
            return Some(value);
        }
        if !t.sharding.is_replicated() {
            let wants = TensorType { sharding: to, ..t.clone() };
            let d = Diagnostic::new(Code::E0408, value.span, format!("`{name}` is annotated as lying in another way"))
                .here(t.to_string())
                .note(format!("the blocks that it names are those of {wants}"))
                .help("lay the argument out so: `dist.shard(x, spec)`, or annotate the parameter as it lies");
            self.report(label(d));
            return None;
        }
        let span = value.span;
        Some(TExpr { kind: TKind::Layout(Box::new(value)), ty: Ty::Tensor(TensorType { sharding: to, ..t }), span })
    }

    /// The type of a device's part of an argument.
    fn blocks_of(&mut self, whole: &TExpr, cut: &mut Cut) -> Option<Ty> {
        let mut wrong = None;
        let mut block_type = |t: &TensorType| {
            let mut shape = vec![];
            for (d, n) in t.shape.iter().enumerate() {
                let axes = t.sharding.axes(d);
                shape.push(match cut.block(self, n, axes) {
                    Some(size) => size,
                    None => {
                        wrong.get_or_insert_with(|| (t.clone(), d));
                        n.clone()
                    }
                });
            }
            block(shape, t, &cut.devices.mesh)
        };
        let ty = layouts::with_tensors(&whole.ty, &mut block_type);
        let Some((t, d)) = wrong else { return Some(ty) };
        let (parts, axes) = (t.sharding.parts(d), t.sharding.axes(d).join(", "));
        let text = format!("the {parts} devices of `{axes}` do not divide dim {d} into blocks of one size");
        let d = Diagnostic::new(Code::E0408, whole.span, text)
            .here(t.to_string())
            .note("every device runs the same code, with blocks of the same shape")
            .help(format!("make the size a multiple of {parts}, for instance with `op.pad`"));
        self.report(d);
        None
    }

    /// The type of the result, put together as its annotation says.
    fn whole_of(&mut self, gives: &Ty, stated: &Ty, cut: &Cut, (at, call): (Span, Span)) -> Option<Ty> {
        let mesh = cut.devices.mesh.clone();
        let mut stated: std::vec::IntoIter<TensorType> = layouts::tensors(stated).into_iter();
        let mut layouts = vec![];
        for t in layouts::tensors(gives) {
            let sharding = stated.next().map(|s| s.sharding).unwrap_or_default();
            if let Some((monoid, axis)) = sharding.partial.iter().find(|p| p.0 != Monoid::Sum) {
                let text = format!("a result of per-device code is never `{}@{axis}`", monoid.name());
                let d = Diagnostic::new(Code::E0408, at, text)
                    .with_label(call, "called here")
                    .note("results are blocks (`B@dp`), summands (`sum@dp`), or the same on all devices");
                self.report(d);
                return None;
            }
            for axis in axes(&sharding) {
                self.known_axis(&mesh, axis, at)?;
            }
            layouts.push(Sharding { mesh: Some(mesh.clone()), ..sharding }.normal(t.rank()));
        }
        let mut layouts = layouts.into_iter();
        Some(layouts::with_tensors(gives, &mut |t| {
            let sharding = layouts.next().unwrap_or_else(|| Sharding::replicated(&mesh));
            let shape = t.shape.iter().enumerate().map(|(d, n)| cut.whole(n, sharding.axes(d))).collect();
            TensorType { shape, dtype: t.dtype, sharding }
        }))
    }

    /// E0408 for a tensor of ordinary code, of which devices have parts, inside per-device code.
    pub fn whole_inside(&self, ty: &Ty, name: &str, span: Span) -> Option<Diagnostic> {
        self.local.as_ref()?;
        let is_whole = |t: &TensorType| {
            t.sharding.dims.iter().any(|d| !d.is_empty())
                || t.sharding.partial.iter().any(|p| !matches!(p.0, Monoid::Each(_)))
        };
        let t = layouts::tensors(ty).into_iter().find(is_whole)?;
        let d =
            Diagnostic::new(Code::E0408, span, format!("`{name}` lies over the devices, and this is the code of one"))
                .here(t.to_string())
                .note("per-device code sees its blocks of whole tensors, which come in as parameters");
        Some(d.help(format!("add a parameter for `{name}`")))
    }
}

/// How sizes of whole tensors and of blocks belong together.
struct Cut<'a> {
    devices: &'a PerDevice,
    /// The block of a size over axes, where only the run will show that they divide it.
    known: Vec<(Size, Vec<String>, Size)>,
}

impl Cut<'_> {
    fn parts(&self, axes: &[String]) -> Size {
        let size = |axis: &String| match self.devices.mesh.size(axis) {
            Some(n) if n > 0 => Size::constant(n as i64),
            _ => self.devices.sizes.iter().find(|(a, _)| a == axis).map_or(Size::constant(1), |(_, s)| s.clone()),
        };
        axes.iter().fold(Size::constant(1), |n, a| n.mul(&size(a)))
    }

    /// The size of a block; `None` where the devices do not divide the size.
    fn block(&mut self, cx: &mut Cx, n: &Size, axes: &[String]) -> Option<Size> {
        if axes.is_empty() {
            return Some(n.clone());
        }
        if let Some((.., block)) = self.known.iter().find(|(whole, a, _)| whole == n && a == axes) {
            return Some(block.clone());
        }
        let parts = self.parts(axes);
        let exact = n.exact_div(&parts);
        if exact.is_none() && n.as_const().is_some() && parts.as_const().is_some() {
            return None;
        }
        let block = exact.unwrap_or_else(|| cx.sizes.fresh("block"));
        self.known.push((n.clone(), axes.to_vec(), block.clone()));
        Some(block)
    }

    fn whole(&self, block: &Size, axes: &[String]) -> Size {
        if axes.is_empty() {
            return block.clone();
        }
        let known = self.known.iter().find(|(_, a, b)| b == block && a == axes);
        known.map_or_else(|| block.mul(&self.parts(axes)), |(whole, ..)| whole.clone())
    }
}
