//! Changes of places: everything on the path gets one owner, then the slot is changed.

use crate::frame::{Gen, plain};
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::types::I64;
use cranelift::codegen::ir::{BlockArg, InstBuilder, Value};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{Change, HExpr, HLvalue, HostType, RegionId, Root, SpanId, Step, TypeId};

/// What leads to a slot, evaluated.
struct Path {
    /// The word of each index or key, and whether it is to be released.
    words: Vec<Option<(Value, bool)>>,
}

impl Gen<'_, '_> {
    pub fn mutate(&mut self, place: &HLvalue, change: &Change, span: SpanId) {
        let before = self.held_count();
        match change {
            Change::Set(value) => self.mutate_set(place, value, span),
            Change::Apply { func, args } => self.mutate_apply(place, *func, args, span),
            Change::Region { region, args } => self.mutate_region(place, *region, args, span),
        }
        self.drop_held(before);
        if let Root::Local(id) = place.root {
            self.note_assigned(id);
        }
    }

    /// Arguments of a region, owned and held.
    fn region_operands(&mut self, args: &[HExpr]) -> Vec<(Value, bool)> {
        let mut values = vec![];
        for e in args {
            let value = self.expr(e);
            let counted = self.unit.counted(e.ty);
            if counted {
                self.hold(value);
            }
            values.push((value, counted));
        }
        values
    }

    fn mutate_region(&mut self, place: &HLvalue, region: RegionId, args: &[HExpr], span: SpanId) {
        let path = self.path(place);
        let values = self.region_operands(args);
        let (slot, ty) = self.slot(place, &path, place.steps.len(), span);
        let old = self.load_slot(slot, place);
        let keep = self.unit.link.keep_globals && matches!(place.root, Root::Global(_));
        if keep {
            self.retain(old, ty);
        }
        let mut words = vec![old];
        words.extend(values.iter().map(|v| v.0));
        self.region_call(region, &words, span);
        self.release_operands(&values);
        if keep {
            self.release(old, ty);
        }
        self.check();
        let result = self.region_results(region)[0];
        self.store_slot(slot, place, result);
        self.release(old, ty);
        self.end_path(&path);
    }

    fn mutate_set(&mut self, place: &HLvalue, value: &HExpr, span: SpanId) {
        let new = self.expr(value);
        if place.steps.is_empty() {
            return self.set_root(place.root, new);
        }
        let counted = self.unit.counted(value.ty);
        if counted {
            self.hold(new);
        }
        let path = self.path(place);
        if let (Some(Step::Key(_)), Some(Some((key, _)))) = (place.steps.last(), path.words.last()) {
            // A new key is allowed at the end of the path.
            let (slot, _) = self.slot(place, &path, place.steps.len() - 1, span);
            let dict = self.b.ins().load(I64, plain(), slot, 0);
            let args = self.rt_args(RtFn::dict_set, [dict, *key, new], span);
            let dict = self.call_rt(RtFn::dict_set, &args).unwrap_or(dict);
            self.b.ins().store(plain(), dict, slot, 0);
            self.end_path(&path);
            if counted {
                self.drop_held(self.held_count() - 1);
                self.call_rt(RtFn::release, &[new]);
            }
            // There may be no memory for one more.
            self.check();
            return;
        }
        let (slot, ty) = self.slot(place, &path, place.steps.len(), span);
        let address = slot;
        if self.unit.counted(ty) {
            let old = self.b.ins().load(I64, plain(), address, 0);
            self.b.ins().store(plain(), new, address, 0);
            self.call_rt(RtFn::release, &[old]);
        } else {
            self.b.ins().store(plain(), new, address, 0);
        }
        self.end_path(&path);
    }

    fn mutate_apply(&mut self, place: &HLvalue, func: RtFn, args: &[HExpr], span: SpanId) {
        let sig = func.sig();
        let path = self.path(place);
        let operands = self.operands(args, Some(place.root));
        let (slot, ty) = self.slot(place, &path, place.steps.len(), span);
        let old = self.load_slot(slot, place);
        let values: Vec<Value> = std::iter::once(old).chain(operands.iter().map(|o| o.0)).collect();
        let words = self.rt_args(func, values, span);
        let result = self.call_rt(func, &words).unwrap_or(old);
        let result = self.value_of(result, ty);
        if sig.consumes_first {
            // A failing function gives its argument back.
            self.store_slot(slot, place, result);
            self.release_operands(&operands);
            if sig.fails {
                self.check();
            }
        } else {
            self.release_operands(&operands);
            if sig.fails {
                self.check();
            }
            self.store_slot(slot, place, result);
            self.release(old, ty);
        }
        self.end_path(&path);
    }

    /// The value in a slot; without an address the slot is a variable in a register.
    fn load_slot(&mut self, slot: Value, place: &HLvalue) -> Value {
        match (place.root, place.steps.is_empty()) {
            (Root::Local(id), true) => self.load_local(id),
            _ => self.b.ins().load(I64, plain(), slot, 0),
        }
    }

    fn store_slot(&mut self, slot: Value, place: &HLvalue, value: Value) {
        match (place.root, place.steps.is_empty()) {
            (Root::Local(id), true) => self.store_local(id, value),
            _ => _ = self.b.ins().store(plain(), value, slot, 0),
        }
    }

    /// Evaluates the indices and keys of a place, in order.
    fn path(&mut self, place: &HLvalue) -> Path {
        let mut words = vec![];
        let simple = !place.steps.iter().any(|s| matches!(s, Step::Index(x) | Step::Key(x) if !is_simple(x)));
        for step in &place.steps {
            words.push(match step {
                Step::Field(_) => None,
                Step::Index(e) | Step::Key(e) => {
                    let (value, owned) = if simple {
                        self.operand(e, &[], Some(place.root))
                    } else {
                        (self.expr(e), self.unit.counted(e.ty))
                    };
                    if owned {
                        self.hold(value);
                    }
                    Some((value, owned))
                }
            });
        }
        Path { words }
    }

    fn end_path(&mut self, path: &Path) {
        let words: Vec<(Value, bool)> = path.words.iter().flatten().copied().collect();
        self.release_operands(&words);
    }

    /// The address of the slot after the first `steps` steps, and the type of what is there.
    fn slot(&mut self, place: &HLvalue, path: &Path, steps: usize, span: SpanId) -> (Value, TypeId) {
        let mut ty = place.root_ty;
        let Some(mut address) = self.root_address(place.root, span) else {
            return (self.int(0), ty);
        };
        for (step, word) in place.steps[..steps].iter().zip(&path.words) {
            let object = self.unique(address);
            let word = word.map(|w| w.0);
            (address, ty) = match (step, self.unit.info(ty), word) {
                (Step::Field(index), HostType::Tuple(items), _) => {
                    let ty = items[*index as usize];
                    (self.field_address(object, *index), ty)
                }
                (Step::Field(index), HostType::Struct { fields, .. }, _) => {
                    let ty = fields[*index as usize].1;
                    (self.field_address(object, *index), ty)
                }
                (Step::Index(_), HostType::List(elem), Some(index)) => {
                    let elem = *elem;
                    (self.element_address(object, index, RtFn::list_slot, span), elem)
                }
                (Step::Key(_), HostType::Dict(_, value), Some(key)) => {
                    let value = *value;
                    let args = self.rt_args(RtFn::dict_slot, [object, key], span);
                    let address = self.call_rt(RtFn::dict_slot, &args).unwrap_or(object);
                    self.check();
                    (address, value)
                }
                // A place follows its types.
                _ => (address, ty),
            };
        }
        (address, ty)
    }

    fn field_address(&mut self, record: Value, index: u32) -> Value {
        self.b.ins().iadd_imm_s(record, i64::from(layout::record::WORDS) + 8 * i64::from(index))
    }

    /// The object whose word is at an address, after making it the only reference to it.
    fn unique(&mut self, address: Value) -> Value {
        let object = self.b.ins().load(I64, plain(), address, 0);
        let count = self.b.ins().load(I64, plain(), object, layout::object::COUNT);
        let (copy, next) = (self.block(), self.block());
        self.b.set_cold_block(copy);
        let result = self.b.append_block_param(next, I64);
        let alone = self.b.ins().icmp_imm_s(IntCC::Equal, count, 1);
        self.b.ins().brif(alone, next, &[BlockArg::Value(object)], copy, &[]);
        self.enter(copy);
        let own = self.call_rt(RtFn::unique, &[object]).unwrap_or(object);
        self.b.ins().store(plain(), own, address, 0);
        self.b.ins().jump(next, &[BlockArg::Value(own)]);
        self.enter(next);
        result
    }
}

/// An index or key that runs nothing that could change a variable.
fn is_simple(e: &HExpr) -> bool {
    use tessera_ir::host::HExprKind::*;
    match &e.kind {
        Int(_) | Str(_) | Local(_) | Global(_) => true,
        Number(_, args) => args.iter().all(is_simple),
        Rt { func: RtFn::list_get | RtFn::list_len, args } => args.iter().all(is_simple),
        Field(a, _) => is_simple(a),
        _ => false,
    }
}
