//! How things are written and what is said of them: heads, parameters, documentation.

use crate::analysis::Analysis;
use crate::symbol::{Symbol, TYPES, function_of};
use std::fmt::Write;
use std::sync::Arc;
use tessera_base::{DType, ItemId, Span};
use tessera_core::builtins::calls::Written;
use tessera_core::builtins::{self, Builtin, CallText, Fallback, Gives, call_text};
use tessera_core::ty::Ty;
use tessera_grammar::ast::*;
use tessera_grammar::literal::clean_doc;
use tessera_infer::db::Item;
use tessera_ops::surface::{self, Default, OpDef};
use tessera_resolve::functions::FnSig;

/// A call as it is written, in parts.
#[derive(Clone, PartialEq, Eq, Debug, std::default::Default)]
pub struct Call {
    pub name: String,
    pub params: Vec<Parameter>,
    /// `-> Tensor[N, f32]`, where it is known.
    pub result: Option<String>,
    pub doc: String,
}

/// A parameter of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub name: String,
    /// With its type and its default.
    pub text: String,
    /// Only by its name.
    pub keyword_only: bool,
    /// Any number of them.
    pub rest: bool,
}

impl Call {
    /// `f(x: Tensor[N, f32], *, axis=-1) -> Tensor[N, f32]`, and where each parameter stands in it.
    pub fn text(&self) -> (String, Vec<(usize, usize)>) {
        let mut out = format!("{}(", self.name);
        let mut places = vec![];
        let mut star = false;
        for (i, p) in self.params.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            if p.keyword_only && !star {
                out.push_str("*, ");
            }
            star |= p.keyword_only || p.rest;
            let start = out.len();
            out.push_str(&p.text);
            places.push((start, out.len()));
        }
        out.push(')');
        if let Some(result) = &self.result {
            let _ = write!(out, " -> {result}");
        }
        (out, places)
    }
}

/// The call of an operator, with defaults.
pub fn operator(def: &OpDef) -> Call {
    let param = |p: &surface::Param| {
        let text = match p.default {
            Default::Required => p.name.to_owned(),
            Default::None => format!("{}=None", p.name),
            Default::Int(n) => format!("{}={n}", p.name),
            Default::Float(x) => format!("{}={x:?}", p.name),
            Default::Bool(b) => format!("{}={}", p.name, if b { "True" } else { "False" }),
            Default::Str(s) => format!("{}=\"{s}\"", p.name),
        };
        Parameter { name: p.name.to_owned(), text, keyword_only: p.keyword_only, rest: false }
    };
    let module = if def.name.contains('.') { "" } else { "op." };
    let mut doc = def.doc.trim().to_owned();
    if !def.signature.is_empty() {
        let _ = write!(doc, "\n\nAxes: `{}`", def.signature);
    }
    if let Some(reason) = def.unsupported {
        let _ = write!(doc, "\n\nNot supported yet: {reason}");
    }
    let params = def.params.iter().map(param).collect();
    Call { name: format!("{module}{}", def.name), params, result: None, doc }
}

/// The call of a function of the host library.
pub fn host(row: Builtin) -> Call {
    let def = row.def();
    let mut params: Vec<Parameter> = row.params().unwrap_or(&[]).iter().map(host_parameter).collect();
    let name = match def.name.split_once('.') {
        // A method: what it is called on is no argument.
        Some(("str", _)) if !params.is_empty() => {
            params.remove(0);
            def.name
        }
        _ => def.name,
    };
    let result = match &def.rule {
        builtins::Rule::Params(_, gives) => Some(given(*gives).to_owned()),
        builtins::Rule::By(_) => None,
    };
    Call { name: name.to_owned(), params, result, doc: def.doc.to_owned() }
}

fn host_parameter(p: &builtins::Param) -> Parameter {
    use builtins::Kind as K;
    let kind = match p.kind {
        K::Int => "int",
        K::Float => "float",
        K::Bool => "bool",
        K::Str => "str",
        K::StrList => "list[str]",
        K::IntList => "list[int]",
        K::Tensor => "Tensor",
        K::Image | K::Sound => "Tensor",
        K::TensorDict => "dict[str, Tensor]",
        K::DType => "dtype",
    };
    let default = match p.fallback {
        Fallback::Required => String::new(),
        Fallback::Int(n) => format!(" = {n}"),
        Fallback::Bool(b) => format!(" = {}", if b { "True" } else { "False" }),
        Fallback::Str(s) => format!(" = \"{s}\""),
        Fallback::DType(d) => format!(" = {}", d.name()),
    };
    let text = format!("{}: {kind}{default}", p.name);
    Parameter { name: p.name.to_owned(), text, keyword_only: false, rest: false }
}

fn given(gives: Gives) -> &'static str {
    match gives {
        Gives::Int => "int",
        Gives::Float => "float",
        Gives::Bool => "bool",
        Gives::Str => "str",
        Gives::StrList => "list[str]",
        Gives::IntList => "list[int]",
        Gives::None => "None",
        Gives::AnyTensor => "Tensor",
        Gives::Matrix => "Tensor[M, N]",
        Gives::Image => "Tensor[H, W, channels, u8]",
        Gives::Sound => "tuple[Tensor[C, N, f32], int]",
        Gives::StrDict => "dict[str, str]",
        Gives::TensorDict => "dict[str, Tensor]",
        Gives::Never => "Never",
    }
}

/// The call of what the checker knows by a rule of its own.
fn by_rule(row: &CallText) -> Option<Call> {
    let param = |p: Written| Parameter {
        name: p.name.to_owned(),
        text: p.text.to_owned(),
        keyword_only: p.keyword_only,
        rest: p.rest,
    };
    let params = row.params()?.into_iter().map(param).collect();
    let result = Some(row.gives.to_owned()).filter(|g| !g.is_empty());
    Some(Call { name: row.name.to_owned(), params, result, doc: row.doc.to_owned() })
}

/// The call of something that is built in, by the name that programs write.
fn built_in(name: &str) -> Option<Call> {
    if let Some(row) = call_text(name) {
        return by_rule(row);
    }
    if let Some(def) = tessera_infer::members::operator(name) {
        return Some(operator(def));
    }
    // What tile programs have of operators.
    let tile = name.strip_prefix("tile.").and_then(surface::find).map(operator);
    tile.map(|call| Call { name: name.to_owned(), ..call }).or_else(|| builtins::find(name).map(host))
}

impl Analysis<'_> {
    /// The text of a span of an item, in one line.
    pub fn one_line(&self, item: Item, span: Span) -> String {
        let text = item.text(self.db);
        let text = text.get(span.start as usize..span.end as usize).unwrap_or("");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The definitions of functions in an item, those inside of functions included.
    pub fn defs(&self, item: Item) -> Vec<Arc<FnDef>> {
        let mut out = vec![];
        crate::path::every_stmt(&item.syntax(self.db).stmts, &mut |s| {
            if let StmtKind::Def(def) = &s.kind {
                out.push(def.clone());
            }
        });
        out
    }

    /// What is written between quotes at the start of a definition or of a file.
    pub fn doc(&self, symbol: &Symbol) -> Option<String> {
        match symbol {
            Symbol::Def(id) => {
                let item = self.item(*id)?;
                let def = self.defs(item).into_iter().next()?;
                def.doc.as_deref().map(str::to_owned)
            }
            Symbol::Struct(id) => self.item(*id)?.struct_def(self.db).clone()?.doc.as_deref().map(str::to_owned),
            Symbol::File(file) => {
                let first = self.heads(*file).first().map(|h| h.id)?;
                let item = self.item(first)?;
                match &item.syntax(self.db).stmts.first()?.kind {
                    StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. }) => Some(clean_doc(text)),
                    _ => None,
                }
            }
            Symbol::OfTensor(name) => match call_text(&format!("Tensor.{name}")) {
                Some(row) => Some(row.doc.to_owned()),
                None => self.call(symbol).map(|c| c.doc).filter(|d| !d.is_empty()),
            },
            Symbol::Builtin(name) => {
                let dtype = DType::parse(name).map(|d| {
                    let kind = match () {
                        () if d.is_complex() => "complex numbers",
                        () if d.is_float() => "floats",
                        () if d.is_int() => "ints",
                        () => "bools",
                    };
                    format!("An element type: {kind} of {} bits.", 8 * d.bytes())
                });
                let said = || call_text(name).map(|row| row.doc.to_owned());
                dtype.or_else(said).or_else(|| self.call(symbol).map(|c| c.doc)).filter(|d| !d.is_empty())
            }
            _ => self.call(symbol).map(|c| c.doc).filter(|d| !d.is_empty()),
        }
    }

    /// How a symbol is called, if it can be.
    pub fn call(&self, symbol: &Symbol) -> Option<Call> {
        match symbol {
            Symbol::Def(id) => {
                let item = self.item(*id)?;
                let sig = item.signature(self.db).clone()?;
                let doc = self.doc(symbol).unwrap_or_default();
                Some(self.call_of(item, &sig, doc))
            }
            Symbol::Local { item, binding } => {
                let item = self.item(*item)?;
                let place = *item.names(self.db).binding(*binding).places.first()?;
                let Some(f) = item.functions(self.db).get(&place.start).cloned() else { return self.held(symbol) };
                let def = self.defs(item).into_iter().find(|d| d.name.span == place);
                let doc = def.and_then(|d| d.doc.as_deref().map(str::to_owned)).unwrap_or_default();
                Some(self.call_of(item, &f.sig, doc))
            }
            Symbol::Variable(..) => self.held(symbol),
            Symbol::Struct(id) => {
                let item = self.item(*id)?;
                let def = item.struct_def(self.db).clone()?;
                let field = |f: &FieldDef| {
                    let default = f.default.as_ref().map(|d| format!(" = {}", self.one_line(item, d.span)));
                    let text =
                        format!("{}: {}{}", f.name.text, self.one_line(item, f.ty.span), default.unwrap_or_default());
                    Parameter { name: f.name.text.to_string(), text, keyword_only: false, rest: false }
                };
                let params = def.fields.iter().map(field).collect();
                let doc = self.doc(symbol).unwrap_or_default();
                Some(Call { name: def.name.text.to_string(), params, result: None, doc })
            }
            Symbol::Builtin(name) | Symbol::Method(name) => built_in(name),
            Symbol::OfTensor(name) => {
                let Some(def) = surface::method(name) else { return built_in(&format!("Tensor.{name}")) };
                let mut call = operator(def);
                call.name = format!("Tensor.{name}");
                if !call.params.is_empty() {
                    call.params.remove(0);
                }
                Some(call)
            }
            _ => None,
        }
    }

    /// The call of a function that a variable holds, under the name of the variable.
    fn held(&self, symbol: &Symbol) -> Option<Call> {
        let (id, start) = function_of(&self.types_of(symbol))?;
        let item = self.item(id)?;
        let f = item.functions(self.db).get(&start)?.clone();
        Some(Call { name: self.name(symbol).to_string(), ..self.call_of(item, &f.sig, String::new()) })
    }

    fn call_of(&self, item: Item, sig: &FnSig, doc: String) -> Call {
        let param = |p: &Param| {
            let mut text =
                if p.kind == ParamKind::Rest { format!("*{}", p.name.text) } else { p.name.text.to_string() };
            if let Some(ty) = &p.ty {
                let _ = write!(text, ": {}", self.one_line(item, ty.span));
            }
            if let Some(default) = &p.default {
                let equals = if p.ty.is_some() { " = " } else { "=" };
                let _ = write!(text, "{equals}{}", self.one_line(item, default.span));
            }
            Parameter {
                name: p.name.text.to_string(),
                text,
                keyword_only: p.kind == ParamKind::KeywordOnly,
                rest: p.kind == ParamKind::Rest,
            }
        };
        Call {
            name: sig.name.to_string(),
            params: sig.params.iter().map(param).collect(),
            result: sig.ret.as_ref().map(|r| self.one_line(item, r.span)),
            doc,
        }
    }

    /// The name of a symbol as programs write it.
    pub fn name(&self, symbol: &Symbol) -> Arc<str> {
        let of_item = |id: ItemId| -> Option<Arc<str>> {
            let item = self.item(id)?;
            match item.struct_def(self.db) {
                Some(def) => Some(def.name.text.clone()),
                None => item.signature(self.db).as_ref().map(|sig| sig.name.clone()),
            }
        };
        match symbol {
            Symbol::Local { item, binding } => {
                self.item(*item).map_or_else(|| "".into(), |i| i.names(self.db).binding(*binding).name.clone())
            }
            Symbol::Def(id) | Symbol::Struct(id) => of_item(*id).unwrap_or_else(|| "".into()),
            Symbol::Field(_, name) | Symbol::Variable(_, name) | Symbol::OfTensor(name) => name.clone(),
            Symbol::File(file) => {
                let path = self.path(*file);
                let last = path.rsplit(['/', '\\']).next().unwrap_or("");
                last.strip_suffix(".tsr").unwrap_or(last).into()
            }
            Symbol::Module(name) | Symbol::Builtin(name) | Symbol::Method(name) => {
                name.rsplit('.').next().unwrap_or("").into()
            }
        }
    }

    /// Types in words: one, or the ones of several calls.
    pub fn in_words(&self, types: &[Ty]) -> String {
        const SHOWN: usize = 3;
        let mut texts: Vec<String> = types.iter().take(SHOWN).map(tessera_infer::describe).collect();
        if types.len() > SHOWN {
            texts.push(format!("… ({} types)", types.len()));
        }
        texts.join(" | ")
    }
}

/// Whether a name is one of a type.
pub fn is_type(name: &str) -> bool {
    TYPES.contains(&name) || DType::parse(name).is_some()
}
