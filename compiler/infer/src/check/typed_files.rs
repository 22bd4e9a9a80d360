//! `io.read_table`, `io.write_table`, `io.read_json`, `io.write_json`: files whose content is of a type that the call names.

use super::args::{Slot, Value};
use super::cx::{Cx, boolean, builtin, error_at, int, string};
use super::generics::{GenericKind, kind_of};
use super::names::Meaning;
use super::serialization::{leaf, part_of};
use tessera_base::{Code, DType, Diagnostic, ItemId, Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::{Arg, Expr};
use tessera_types::annot::NameMeaning;
use tessera_types::unify::Role;

/// The element types of columns.
const COLUMNS: [DType; 8] =
    [DType::F64, DType::F32, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::Bool];

impl Cx<'_> {
    /// `io.read_table(path, columns, delimiter=",", missing=None, first=0, rows=None)`: `columns` is a struct, whose sizes become
    /// one size that only the file knows.
    pub fn read_table(&mut self, args: &[Arg], span: Span) -> TExpr {
        let name = "io.read_table";
        let Some((class, given)) = self.with_type(name, "columns", args, span) else { return error_at(span) };
        let [path, delimiter, missing, first, rows] = &given[..] else { return error_at(span) };
        let at = class.span;
        let ty = match self.meaning(class) {
            Some(Meaning::Struct(id)) => self.of_unknown_rows(id, at),
            Some(Meaning::Broken) => return error_at(span),
            _ => {
                Err(Diagnostic::new(Code::E0204, at, format!("`{name}` takes a struct, whose fields are the columns"))
                    .help("struct Row[N]:\n    age: Tensor[N, f64]\n    name: list[str]"))
            }
        };
        let (ty, size) = match ty {
            Ok(made) => made,
            Err(d) => return self.fail(d),
        };
        let Ty::Struct(columns) = &ty else { return error_at(span) };
        let described = match described(columns, size.as_ref(), at) {
            Ok(text) => text,
            Err(d) => return self.fail(d),
        };
        let path = self.typed_file_arg(name, "path", path.clone(), Ty::Str, span);
        let delimiter = delimiter.clone().unwrap_or_else(|| string(",", span));
        let delimiter = self.typed_file_arg(name, "delimiter", Some(delimiter), Ty::Str, span);
        let known = missing.as_ref().is_some_and(|m| m.ty != Ty::None);
        let mut number = |param, value: &Option<TExpr>, otherwise| {
            let value = value.clone().filter(|v| v.ty != Ty::None).unwrap_or_else(|| int(otherwise, span));
            self.typed_file_arg(name, param, Some(value), Ty::int(), span)
        };
        let missing = number("missing", missing, 0);
        let first = number("first", first, 0);
        let rows = number("rows", rows, i64::MAX);
        if [&path, &delimiter, &missing, &first, &rows].iter().any(|a| a.ty.is_error()) {
            return error_at(span);
        }
        self.host("calls `io.read_table`", span);
        let args = vec![path, string(described, span), delimiter, boolean(known, span), missing, first, rows];
        builtin(Builtin::io_read_table, args, ty, span)
    }

    /// `io.write_table(path, table, delimiter=",")`.
    pub fn write_table(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let name = "io.write_table";
        let slots = Slot::built_in(name);
        let Some(given) = self.match_params(name, &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter();
        let (path, Some(table), delimiter) = (given.next().flatten(), given.next().flatten(), given.next().flatten())
        else {
            return error_at(span);
        };
        let path = self.typed_file_arg(name, "path", path, Ty::Str, span);
        let delimiter = delimiter.unwrap_or_else(|| string(",", span));
        let delimiter = self.typed_file_arg(name, "delimiter", Some(delimiter), Ty::Str, span);
        if [&path, &table, &delimiter].iter().any(|a| a.ty.is_error()) {
            return error_at(span);
        }
        let Ty::Struct(columns) = &table.ty else {
            let text = format!("`{name}` takes a struct, whose fields are the columns, and this is `{}`", table.ty);
            let d = Diagnostic::new(Code::E0204, table.span, text);
            return self.fail(d.help("struct Row[N]:\n    age: Tensor[N, f64]\n    name: list[str]"));
        };
        let written = |ty: &Ty| match ty {
            Ty::List(t) => matches!(**t, Ty::Str | Ty::Unknown),
            Ty::Tensor(t) => t.shape.len() == 1 && t.dtype.is_none_or(|d| COLUMNS.contains(&d)),
            _ => false,
        };
        if let Some((field, ty)) = columns.fields.iter().find(|(_, ty)| !written(ty)) {
            let d = no_column(columns, field, ty, table.span);
            return self.fail(d);
        }
        self.host("calls `io.write_table`", span);
        builtin(Builtin::io_write_table, vec![path, table, delimiter], Ty::None, span)
    }

    /// `io.read_json(path, type, extra=False)`.
    pub fn read_json(&mut self, args: &[Arg], span: Span) -> TExpr {
        let name = "io.read_json";
        let Some((class, given)) = self.with_type(name, "type", args, span) else { return error_at(span) };
        let [path, extra] = &given[..] else { return error_at(span) };
        let (ty, _) = self.annotation(class);
        if ty.is_error() || !self.is_json(name, "reads", &ty, class.span) {
            return error_at(span);
        }
        if let Some((path, _)) = leaf(&ty, &|ty| *ty == Ty::Unknown) {
            let text = format!("`{name}` makes a value of a type, and {} has none here", part_of(path));
            let d = Diagnostic::new(Code::E0204, class.span, text);
            return self.fail(d.help("name the types of elements: `list[float]`, `dict[str, int]`"));
        }
        let path = self.typed_file_arg(name, "path", path.clone(), Ty::Str, span);
        let extra = extra.clone().unwrap_or_else(|| boolean(false, span));
        let extra = self.typed_file_arg(name, "extra", Some(extra), Ty::Bool, span);
        if path.ty.is_error() || extra.ty.is_error() {
            return error_at(span);
        }
        self.host("calls `io.read_json`", span);
        builtin(Builtin::io_read_json, vec![path, extra], ty, span)
    }

    /// `io.write_json(path, value)`.
    pub fn write_json(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let name = "io.write_json";
        let slots = Slot::built_in(name);
        let Some(given) = self.match_params(name, &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter();
        let (path, Some(value)) = (given.next().flatten(), given.next().flatten()) else { return error_at(span) };
        let path = self.typed_file_arg(name, "path", path, Ty::Str, span);
        if path.ty.is_error() || value.ty.is_error() || !self.is_json(name, "writes", &value.ty, value.span) {
            return error_at(span);
        }
        self.host("calls `io.write_json`", span);
        builtin(Builtin::io_write_json, vec![path, value], Ty::None, span)
    }

    /// The argument that is a type, and the values of the other parameters in their order.
    fn with_type<'a>(
        &mut self,
        function: &str,
        param: &str,
        args: &'a [Arg],
        span: Span,
    ) -> Option<(&'a Expr, Vec<Option<TExpr>>)> {
        let by_name = args.iter().position(|a| a.name.as_ref().is_some_and(|n| &*n.text == param));
        let by_place = || args.get(1).filter(|a| a.name.is_none() && args.iter().take(2).all(|a| !a.star)).map(|_| 1);
        let Some(at) = by_name.or_else(by_place) else {
            self.error(Code::E0104, span, format!("`{function}` needs a type for `{param}`"));
            return None;
        };
        let others: Vec<Arg> = args.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, a)| a.clone()).collect();
        let values = self.args(&others);
        let slots: Vec<Slot> = Slot::built_in(function).into_iter().filter(|s| &*s.name != param).collect();
        let given = self.match_params(function, &slots, values, span, None)?;
        if given.iter().flatten().any(|v| v.ty.is_error()) {
            return None;
        }
        Some((&args.get(at)?.value, given))
    }

    fn typed_file_arg(&mut self, function: &str, param: &str, value: Option<TExpr>, expected: Ty, span: Span) -> TExpr {
        let Some(value) = value else { return error_at(span) };
        let role = Role::Argument { function: function.to_owned(), param: param.to_owned() };
        self.expect(value, &expected, param, Span::NONE, role)
    }

    /// A struct with one size that only data knows for all its sizes.
    fn of_unknown_rows(&mut self, id: ItemId, span: Span) -> Result<(Ty, Option<Size>), Diagnostic> {
        let Some(def) = self.struct_def(id) else { return Ok((Ty::Error, None)) };
        let rows = if def.generics.is_empty() { None } else { Some(self.sizes.fresh_side("rows")) };
        let mut generics = super::structs::Generics::new();
        for (g, rows) in def.generics.iter().zip(rows.iter().cycle()) {
            if kind_of(&def, &g.text) != GenericKind::Size {
                let text = format!("the parameter `{}` of `{}` is no size", g.text, def.name.text);
                return Err(Diagnostic::new(Code::E0204, span, text)
                    .with_label(def.head, "declared here")
                    .note("columns are of types that are known before the program runs"));
            }
            generics.insert(g.text.clone(), NameMeaning::Size(rows.clone()));
        }
        Ok((self.struct_type(id, &generics)?, rows))
    }

    /// Whether JSON has values of a type; reports the part that it has not.
    fn is_json(&mut self, function: &str, verb: &str, ty: &Ty, span: Span) -> bool {
        let numbers =
            |ty: &Ty| matches!(ty, Ty::Int(_) | Ty::Float | Ty::Bool | Ty::Str | Ty::Error | Ty::Unknown | Ty::Never);
        let has = |ty: &Ty| numbers(ty) || matches!(ty, Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_) | Ty::Struct(_));
        let Some((path, part)) = leaf(ty, &|ty| !has(ty)).map(|(path, part)| (path, part.clone())) else {
            return !keyed_otherwise(ty) || {
                let text = format!("`{function}` {verb} dicts with texts as keys, and `{ty}` has others");
                self.report(Diagnostic::new(Code::E0204, span, text).note("the keys of JSON objects are texts"));
                false
            };
        };
        let what = part_of(path);
        let text = format!("`{function}` {verb} numbers and strings, and {what} is `{part}`");
        let d = Diagnostic::new(Code::E0204, span, text).note("in structs, tuples, lists and dicts");
        self.report(match part.is_tensor() {
            true if verb == "reads" => d.help("read a `list[float]`, and make a tensor of it: `op.array(values)`"),
            true => d.help("write its elements as a list: `x.tolist()`"),
            false => d,
        });
        false
    }

    /// Whether a tensor is a picture or a sound that can be written; reports where it is not.
    pub fn is_written_as(&mut self, function: &str, value: &TExpr, dtype: DType, ranks: [usize; 2]) -> bool {
        let Ty::Tensor(TensorType { shape, dtype: found, .. }) = &value.ty else { return true };
        let (wanted, help) = match dtype {
            DType::U8 => (
                "u8 pixels [height, width] or [height, width, channels]",
                "pixels from 0 to 255: `op.round(op.clip(x, 0.0, 1.0) * 255.0).to(u8)` of floats from 0 to 1",
            ),
            _ => ("f32 samples [samples] or [channels, samples]", "convert it: `x.to(f32)`"),
        };
        if found.is_none_or(|d| d == dtype) && ranks.contains(&shape.len()) {
            return true;
        }
        let d = Diagnostic::new(
            Code::E0204,
            value.span,
            format!("`{function}` takes {wanted}, and this is `{}`", value.ty),
        );
        let other = found.is_some_and(|d| d != dtype);
        self.report(if other { d.help(help) } else { d });
        false
    }
}

/// Whether a dict in a type has keys that are no texts.
fn keyed_otherwise(ty: &Ty) -> bool {
    match ty {
        Ty::Dict(k, v) => !matches!(**k, Ty::Str | Ty::Unknown) || keyed_otherwise(v),
        Ty::List(t) => keyed_otherwise(t),
        Ty::Tuple(ts) => ts.iter().any(keyed_otherwise),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| keyed_otherwise(t)),
        _ => false,
    }
}

/// The columns as the runtime takes them: a line for each, its name and what it is read as.
fn described(columns: &StructTy, rows: Option<&Size>, span: Span) -> Result<String, Diagnostic> {
    let mut out = String::new();
    for (name, ty) in &columns.fields {
        let kind = match ty {
            Ty::List(t) if **t == Ty::Str => "str",
            Ty::Tensor(t) if rows.is_some_and(|n| t.shape[..] == [n.clone()]) => match t.dtype {
                Some(d) if COLUMNS.contains(&d) => d.name(),
                _ => return Err(no_column(columns, name, ty, span)),
            },
            _ => return Err(no_column(columns, name, ty, span)),
        };
        out += &format!("{name} {kind}\n");
    }
    Ok(out)
}

fn no_column(columns: &StructTy, name: &str, ty: &Ty, span: Span) -> Diagnostic {
    let text = format!("the field `{name}` of `{}` is `{ty}`, which is no column of a table", columns.name);
    Diagnostic::new(Code::E0204, span, text)
        .note("a column is `Tensor[N, f64]`, with a size that the file brings, or `list[str]`")
        .note("element types of columns are f64, f32, i64, i32, i16, i8, u8 and bool")
}
