//! Structs: their types at given parameters, and constructors.

use super::annots::{AnnotScope, Unbound};
use super::args::{Slot, Value};
use super::calls::literal_fit;
use super::coerce::holds_any;
use super::container_literals::{Wanted, outline};
use super::cx::{Cx, error_at};
use super::generics::{self, GenericKind, dtype_in, is_ragged, kind_of, type_in};
use super::size_checks::{SizeClaim, has_sizes};
use super::types::has_unknown;
use crate::db;
use crate::known_elsewhere;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, ItemId, Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::{Arg, Expr, FieldDef, StructDef};
use tessera_types::annot::{self, GenericArg, NameMeaning};
use tessera_types::unify::{Coerce, Role, bind_signature, convert, fill, mismatch_diagnostic, refine};

/// What the parameters of a struct stand for.
pub type Generics = BTreeMap<Arc<str>, NameMeaning>;

/// Structs inside each other.
const STRUCT_DEPTH_MAX: usize = 32;

/// Fields of a struct, with those of the structs in it, and it itself: each is looked at where a value of the struct is.
const STRUCT_PARTS_MAX: usize = 10_000;

/// How many values a value of the type is made of, elements of lists counted once; counted up to `most`.
fn parts(ty: &Ty, most: usize) -> usize {
    let sum = |sum: usize, t: &Ty| if sum < most { sum + parts(t, most - sum) } else { sum };
    match ty {
        Ty::Struct(s) => s.fields.iter().map(|(_, t)| t).fold(1, sum),
        Ty::Tuple(ts) => ts.iter().fold(1, sum),
        Ty::List(t) | Ty::Dict(_, t) => sum(1, t),
        _ => 1,
    }
}

impl Cx<'_> {
    pub fn struct_def(&self, id: ItemId) -> Option<Arc<StructDef>> {
        db::item_of(self.db, id)?.struct_def(self.db).clone()
    }

    pub fn struct_name(&self, id: ItemId) -> Arc<str> {
        self.struct_def(id).map_or_else(|| "?".into(), |d| d.name.text.clone())
    }

    /// The struct's type with its parameters given.
    pub fn struct_type(&mut self, id: ItemId, generics: &Generics) -> Result<Ty, Diagnostic> {
        let Some(def) = self.struct_def(id) else { return Ok(Ty::Error) };
        if generics.is_empty()
            && def.generics.is_empty()
            && let Some(ty) = self.structs.get(&id)
        {
            return Ok(ty.clone());
        }
        if self.struct_stack.contains(&id) || self.struct_stack.len() > STRUCT_DEPTH_MAX {
            return Err(Diagnostic::new(
                Code::E0215,
                def.name.span,
                format!("the struct `{}` contains itself", def.name.text),
            )
            .note("such a value would have no end"));
        }
        self.struct_stack.push(id);
        let mut fields = vec![];
        let mut result = Ok(());
        for field in &def.fields {
            match self.field_type(id, &field.ty, generics) {
                Ok(ty) => fields.push((field.name.text.clone(), ty)),
                Err(d) => {
                    result = Err(d);
                    fields.push((field.name.text.clone(), Ty::Error));
                }
            }
        }
        self.struct_stack.pop();
        result?;
        let ty = Ty::Struct(Arc::new(StructTy { name: def.name.text.clone(), item: id.0, fields }));
        if parts(&ty, STRUCT_PARTS_MAX) >= STRUCT_PARTS_MAX {
            let text = format!("the struct `{}` has too many parts, counted through all structs in it", def.name.text);
            return Err(Diagnostic::new(Code::E0901, def.name.span, text)
                .note(format!("they are {STRUCT_PARTS_MAX} or more"))
                .help("keep parts that are alike in a list: `parts: list[Part]`"));
        }
        if generics.is_empty() && def.generics.is_empty() {
            self.structs.insert(id, ty.clone());
        }
        Ok(ty)
    }

    fn field_type(&mut self, id: ItemId, ty: &Expr, generics: &Generics) -> Result<Ty, Diagnostic> {
        let home = db::home(self.db, id).unwrap_or(self.file);
        let mut scope = AnnotScope {
            cx: self,
            own: generics.clone(),
            unbound: Unbound::Refuse,
            made: vec![],
            inside: false,
            home,
            definition: Some(id),
            constants: vec![],
            namesakes: vec![],
            outer: Default::default(),
        };
        annot::resolve(ty, &mut scope)
    }

    /// `Layer[D]` in an annotation.
    pub fn apply_struct(&mut self, id: ItemId, args: Vec<(GenericArg, Span)>, span: Span) -> Result<Ty, Diagnostic> {
        let Some(def) = self.struct_def(id) else { return Ok(Ty::Error) };
        if args.len() != def.generics.len() {
            return Err(Diagnostic::new(
                Code::E0215,
                span,
                format!("`{}` has {} parameters, and {} are given", def.name.text, def.generics.len(), args.len()),
            )
            .with_label(def.head, "declared here"));
        }
        let generics = generics::given(&def, args)?;
        self.struct_type(id, &generics)
    }

    /// Reports what is wrong with a struct's definition.
    pub fn check_struct(&mut self, id: ItemId) {
        let Some(def) = self.struct_def(id) else { return };
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        let mut wrong = vec![];
        for field in &def.fields {
            if let Some(first) = seen.insert(&field.name.text, field.name.span) {
                wrong.push(
                    Diagnostic::new(
                        Code::E0106,
                        field.name.span,
                        format!("the field `{}` is defined twice", field.name.text),
                    )
                    .with_label(first, "first here"),
                );
            }
        }
        for d in &def.decorators {
            wrong.push(Diagnostic::new(Code::E0690, d.span, "structs take no decorators"));
        }
        let generics = self.placeholder_generics(&def);
        self.struct_stack.push(id);
        for field in &def.fields {
            if let Err(d) = self.field_type(id, &field.ty, &generics) {
                wrong.push(d);
            }
        }
        self.struct_stack.pop();
        for d in wrong {
            self.report(d);
        }
    }

    fn placeholder_generics(&mut self, def: &StructDef) -> Generics {
        def.generics
            .iter()
            .map(|g| {
                let meaning = match kind_of(def, &g.text) {
                    GenericKind::Size => NameMeaning::Size(self.sizes.rigid(&g.text)),
                    GenericKind::Type => NameMeaning::Type(Ty::Error),
                    GenericKind::DType => NameMeaning::DType(DType::F32),
                };
                (g.text.clone(), meaning)
            })
            .collect()
    }

    /// `Name(…)`: a value of the struct.
    pub fn construct(&mut self, id: ItemId, args: &[Arg], span: Span) -> TExpr {
        let Some(def) = self.struct_def(id) else {
            self.args(args);
            return error_at(span);
        };
        let wanted = |f: &FieldDef| Wanted::plain(&f.name.text, outline(&f.ty));
        let values = self.args_for(args, || def.fields.iter().map(wanted).collect());
        let slots: Vec<Slot> = def.fields.iter().map(|f| Slot::plain(&f.name.text, f.default.is_some())).collect();
        let before = self.diagnostics.len();
        let value = self.construct_of(id, &def, &slots, values, span);
        // `nn.Linear(3, 4)`: the library has a function that draws the weights.
        if let Some(d) = self.diagnostics.get(before)
            && let Some(init) = self.initialiser(id, &def.name.text)
        {
            self.diagnostics[before] = d.clone().help(format!("`{init}(…)` makes one with its first values"));
        }
        value
    }

    /// The function beside a struct that makes one: `layer_norm_init` of `LayerNorm`.
    fn initialiser(&self, id: ItemId, name: &str) -> Option<String> {
        self.of_same_file(id, format!("{}_init", known_elsewhere::in_lower_case(name)))
    }

    /// The name, if the file of an item defines it.
    pub fn of_same_file(&self, id: ItemId, name: String) -> Option<String> {
        let file = db::file_of(self.db, db::item_of(self.db, id)?.file(self.db))?;
        db::scope(self.db, file).names.contains_key(name.as_str()).then_some(name)
    }

    /// What is to be done where a value of a struct is called.
    pub fn called_struct(&self, d: Diagnostic, s: &StructTy, span: Span) -> Diagnostic {
        let d = d.note("structs have no methods: functions take them as parameters");
        match self.of_same_file(ItemId(s.item), known_elsewhere::in_lower_case(&s.name)) {
            Some(f) => d.help_about(&format!("call the function that takes it: `{f}({{m}}, …)`"), &[("m", span)]),
            None => d.help_about(
                &format!("write a function: `def apply(m: {}, …)`, and `apply({{m}}, …)`", s.name),
                &[("m", span)],
            ),
        }
    }

    fn construct_of(
        &mut self,
        id: ItemId,
        def: &Arc<StructDef>,
        slots: &[Slot],
        values: Vec<Value>,
        span: Span,
    ) -> TExpr {
        let Some(matched) = self.match_params(&def.name.text, slots, values, span, Some(def.head)) else {
            return error_at(span);
        };
        let mut given = vec![];
        for (field, value) in def.fields.iter().zip(matched) {
            given.push(match (value, &field.default) {
                (Some(v), _) => v,
                (None, Some(default)) => {
                    let value = self.default_value(default, Some(&field.ty), id);
                    TExpr { span, ..value }
                }
                (None, None) => error_at(span),
            });
        }
        if given.iter().any(|v| v.ty.is_error()) {
            return error_at(span);
        }
        let Some((generics, declared)) = self.infer_generics(id, def, &given, span) else { return error_at(span) };
        let given = if declared.is_empty() { given } else { self.fields_together(def, given, &declared) };
        let (mut declared, mut own, mut out) = (vec![], vec![], vec![]);
        let (mut failed, mut open) = (false, false);
        for (field, value) in def.fields.iter().zip(given) {
            let Ok(ty) = self.field_type(id, &field.ty, &generics) else { return error_at(span) };
            let role = Role::Field { of: def.name.text.to_string(), field: field.name.text.to_string() };
            own.push(value.ty.clone());
            let (value, compare) = self.expect_open(value, &ty, &field.name.text, field.ty.span, role);
            failed |= value.ty.is_error();
            open |= compare;
            declared.push(ty);
            out.push(value);
        }
        if failed {
            return error_at(span);
        }
        if open {
            // What one field has to be compared for is not yet true of another one.
            for ((value, ty), own) in out.iter_mut().zip(&declared).zip(&own).filter(|(_, own)| !holds_any(own)) {
                value.ty = convert(ty, own);
            }
            out = self.fields_agree(def, out, &declared, false);
            for (value, ty) in out.iter_mut().zip(&declared) {
                value.ty = refine(ty, &value.ty);
            }
        }
        // The value may say more than the declaration: the number of an int, an element type.
        let fields = def.fields.iter().zip(&out).map(|(f, v)| (f.name.text.clone(), v.ty.clone())).collect();
        let ty = Ty::Struct(Arc::new(StructTy { name: def.name.text.clone(), item: id.0, fields }));
        TExpr { kind: TKind::Struct(out), ty, span }
    }

    /// The parameters of a struct from the values of its fields.
    ///
    /// Also gives the types of the fields in terms of the struct's sizes, where only a run can tell whether the
    /// fields agree on them.
    fn infer_generics(
        &mut self,
        id: ItemId,
        def: &StructDef,
        given: &[TExpr],
        span: Span,
    ) -> Option<(Generics, Vec<Ty>)> {
        let mut generics = Generics::new();
        let mut vars: BTreeMap<Arc<str>, SizeVar> = BTreeMap::new();
        for g in &def.generics {
            match kind_of(def, &g.text) {
                GenericKind::Size => {
                    let var = self.sizes.rigid_var(&g.text);
                    generics.insert(g.text.clone(), NameMeaning::Size(Size::var(var.clone())));
                    vars.insert(g.text.clone(), var);
                }
                GenericKind::Type => {
                    let fields = def.fields.iter().zip(given);
                    let mut found = fields.filter_map(|(f, v)| type_in(&f.ty, &v.ty, &g.text));
                    let first = found.next();
                    // What stands alone has one size, with which those in a list are compared.
                    let ragged = first.as_ref().is_some_and(is_ragged);
                    let alone = if ragged { found.find(|ty| !is_ragged(ty)) } else { None };
                    let Some(ty) = alone.or(first) else { return self.cannot_infer(def, &g.text, span) };
                    generics.insert(g.text.clone(), NameMeaning::Type(ty));
                }
                GenericKind::DType => {
                    let found = def.fields.iter().zip(given).find_map(|(f, v)| dtype_in(&f.ty, &v.ty, &g.text));
                    let Some(dtype) = found else { return self.cannot_infer(def, &g.text, span) };
                    generics.insert(g.text.clone(), NameMeaning::DType(dtype));
                }
            }
        }
        if vars.is_empty() {
            return Some((generics, vec![]));
        }
        let mut declared = vec![];
        for field in &def.fields {
            // Reported at the definition.
            declared.push(self.field_type(id, &field.ty, &generics).ok()?);
        }
        let set: BTreeSet<SizeVar> = vars.values().cloned().collect();
        let found: Vec<Ty> = declared.iter().zip(given).map(|(d, v)| literal_fit(d, &generics::said_by(v))).collect();
        let spans: Vec<Span> = given.iter().map(|v| v.span).collect();
        match bind_signature(&mut self.sizes, &set, &declared, &found, &spans) {
            Ok(bindings) => {
                for (name, var) in vars {
                    match bindings.sizes.get(&var) {
                        Some(size) => drop(generics.insert(name, NameMeaning::Size(size.clone()))),
                        None => return self.cannot_infer(def, &name, span),
                    }
                }
                // A size that is solved for, such as N of `Tensor[N + 3]`, is one too.
                let solved: Vec<Size> =
                    bindings.sizes.iter().filter(|(v, _)| v.natural).map(|(_, n)| n.clone()).collect();
                let sure = solved.iter().all(|n| self.sizes.facts.at_least(n, 0));
                let solved = Ty::Tensor(TensorType::new(solved, DType::F32));
                if !self.dims_hold(&def.name.text, [&solved].into_iter(), span) {
                    return None;
                }
                let open = !sure || bindings.coerces.iter().any(Coerce::compares);
                Some((generics, if open { declared } else { vec![] }))
            }
            Err(p) => {
                let field = &def.fields[p.index];
                let role = Role::Field { of: def.name.text.to_string(), field: field.name.text.to_string() };
                let mut d = mismatch_diagnostic(&p.mismatch, &role, spans[p.index], Some(field.ty.span));
                for (name, size, from) in &p.because {
                    let by = def.fields.get(*from).map_or("?", |f| &f.name.text);
                    d = d.with_label(
                        spans.get(*from).copied().unwrap_or_default(),
                        format!("{name} is {size}, from `{by}`"),
                    );
                }
                self.report(d);
                None
            }
        }
    }

    /// The values of fields, compared where they have sizes. What is written out without any becomes what it is
    /// declared as: that is the last place where its elements are seen.
    fn fields_together(&mut self, def: &StructDef, given: Vec<TExpr>, declared: &[Ty]) -> Vec<TExpr> {
        let mut out = vec![];
        for ((field, value), ty) in def.fields.iter().zip(given).zip(declared) {
            let plain = !has_sizes(ty) && !holds_any(&value.ty);
            let role = Role::Field { of: def.name.text.to_string(), field: field.name.text.to_string() };
            out.push(match plain {
                true => self.expect(value, ty, &field.name.text, field.ty.span, role),
                false => value,
            });
        }
        if out.iter().any(|v| v.ty.is_error()) {
            return out;
        }
        self.fields_agree(def, out, declared, true)
    }

    /// The values of fields, compared with the types `declared` of the fields, of which one may say the sizes of
    /// another. `ints`: whether ints are compared too.
    fn fields_agree(&mut self, def: &StructDef, given: Vec<TExpr>, declared: &[Ty], ints: bool) -> Vec<TExpr> {
        let mut saved = vec![];
        for ((field, value), declared) in def.fields.iter().zip(given).zip(declared) {
            // An empty list is of the field's type.
            let ty = if has_unknown(&value.ty) { fill(&value.ty, declared) } else { value.ty.clone() };
            saved.push(self.save(&field.name.text, TExpr { ty, ..value }));
        }
        let given = saved;
        let parts = def.fields.iter().zip(&given).zip(declared).map(|((field, value), declared)| SizeClaim {
            what: Role::Field { of: def.name.text.to_string(), field: field.name.text.to_string() }.text(),
            declared: declared.clone(),
            found: value.ty.clone(),
            value: value.clone(),
            at: field.ty.span,
            ints,
            before: false,
        });
        let stmts = self.check_sizes(parts.collect());
        self.out.extend(stmts);
        given
    }

    fn cannot_infer<T>(&mut self, def: &StructDef, name: &str, span: Span) -> Option<T> {
        let d = Diagnostic::new(
            Code::E0216,
            span,
            format!("the parameter `{name}` of `{}` cannot be told from the fields", def.name.text),
        )
        .with_label(def.head, "declared here");
        self.report(d);
        None
    }

    /// The type of a struct whose field was assigned.
    pub fn with_field(ty: &StructTy, index: usize, field: Ty) -> Ty {
        let mut out = ty.clone();
        if let Some(slot) = out.fields.get_mut(index) {
            slot.1 = field;
        }
        Ty::Struct(Arc::new(out))
    }
}
