//! Functions of the host library as runtime functions.

use super::body::Body;
use tessera_abi::rt::RtFn::{self, *};
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{Arith, HExpr, HExprKind, HStmt, HostType, Rel, TypeId};

/// Builtins that are one runtime function of the same arguments.
const DIRECT: &[(&str, RtFn)] = &[
    ("range", range_list),
    ("chr", chr),
    ("ord", ord),
    ("float.round", round_int),
    ("float.round_digits", round_digits),
    ("list.min", list_min),
    ("list.max", list_max),
    ("list.any", list_any),
    ("list.all", list_all),
    ("list.sorted", list_sorted),
    ("list.sorted_by", list_sorted_by),
    ("list.reversed", list_reversed),
    ("list.index", list_index),
    ("list.count", list_count),
    ("dict.keys", dict_keys),
    ("dict.values", dict_values),
    ("dict.get", dict_get_or),
    ("str.list", str_chars),
    ("str.splitlines", str_splitlines),
    ("str.join", str_join),
    ("str.startswith", str_startswith),
    ("str.endswith", str_endswith),
    ("str.upper", str_upper),
    ("str.lower", str_lower),
    ("str.find", str_find),
    ("str.rfind", str_rfind),
    ("str.index", str_index_of),
    ("str.count", str_count),
    ("str.zfill", str_zfill),
    ("str.replace", str_replace_count),
    ("str.split", str_split_max),
    ("io.read_npy", io_read_npy),
    ("io.write_npy", io_write_npy),
    ("io.read_idx", io_read_idx),
    ("io.write_npz", io_write_npz),
    ("io.write_safetensors", io_write_safetensors),
    ("io.read_csv", io_read_csv),
    ("io.write_csv", io_write_csv),
    ("io.read_text", io_read_text),
    ("io.write_text", io_write_text),
    ("io.append_text", io_append_text),
    ("io.read_tokenizer", io_read_tokenizer),
    ("io.encode", io_encode),
    ("io.decode", io_decode),
    ("io.token_id", io_token_id),
    ("io.token_count", io_token_count),
    ("io.exists", io_exists),
    ("io.read_bytes", io_read_bytes),
    ("io.draw_lines", plot_lines),
    ("io.draw_heat", plot_heat),
    ("dist.show", tensor_show),
    ("time.now", time_now),
    ("time.perf_counter", time_perf),
    ("time.sleep", time_sleep),
    ("sys.exit", sys_exit),
    ("sys.dir", sys_dir),
    ("sys.env", env_get),
    ("sys.progress", progress),
    ("math.gcd", int_gcd),
    ("sizes.differ", sizes_differ),
];

/// Builtins that also take the type of their result.
const WITH_TYPE: &[(&str, RtFn)] = &[
    ("tensor.tolist", tensor_to_list),
    ("io.read_npz", io_read_npz),
    ("io.read_safetensors", io_read_safetensors),
    ("io.read_gguf", io_read_gguf),
    ("io.read_gguf_meta", io_read_gguf_meta),
    ("io.read_onnx_tensors", io_read_onnx_tensors),
    ("io.read_lines", io_read_lines),
    ("io.load", io_load),
    ("sys.args", sys_args),
];

/// Builtins that are one runtime function with a number behind the arguments.
const NUMBERED: &[(&str, RtFn, i64)] = &[
    ("str.isdigit", str_is, 0),
    ("str.isalpha", str_is, 1),
    ("str.isalnum", str_is, 2),
    ("str.isspace", str_is, 3),
    ("str.isupper", str_is, 4),
    ("str.islower", str_is, 5),
    ("str.title", str_case, 2),
    ("str.capitalize", str_case, 3),
    ("str.strip", str_strip_chars, 0),
    ("str.lstrip", str_strip_chars, 1),
    ("str.rstrip", str_strip_chars, 2),
    ("str.ljust", str_pad, 0),
    ("str.rjust", str_pad, 1),
    ("str.center", str_pad, 2),
];

/// Functions of one float by their number in [`RtFn::math`].
const MATH: &[(&str, i64)] = &[
    ("sqrt", 0),
    ("exp", 1),
    ("log", 2),
    ("sin", 3),
    ("cos", 4),
    ("tan", 5),
    ("floor", 6),
    ("ceil", 7),
    ("tanh", 8),
    ("log2", 9),
    ("log10", 10),
    ("trunc", 11),
    ("expm1", 12),
    ("log1p", 13),
    ("asin", 14),
    ("acos", 15),
    ("atan", 16),
    ("sinh", 17),
    ("cosh", 18),
    ("erf", 19),
];

/// Functions of two floats by their number in [`RtFn::math2`].
const MATH2: &[(&str, i64)] = &[("atan2", 0), ("pow", 1), ("hypot", 2)];

fn row<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(n, _)| *n == name).map(|(_, x)| *x)
}

impl Body<'_, '_> {
    pub(super) fn builtin(&mut self, name: &str, args: &[TExpr], ty: &Ty, span: Span) -> HExpr {
        let result = self.cx.erase(ty);
        if name == "print" {
            return self.print(args, span);
        }
        if name == SUM_OF_NONE {
            let message = self.str(NO_SUM, span);
            let stop = HStmt::Fail { code: Code::E0711, message, span: self.cx.span(span) };
            let value = Box::new(self.make(HExprKind::None, result, span));
            return self.make(HExprKind::Block { stmts: vec![stop], value }, result, span);
        }
        if let Some(func) = row(DIRECT, name) {
            let args = self.builtin_args(name, args);
            return self.rt(func, args, result, span);
        }
        if let Some(func) = row(WITH_TYPE, name) {
            let mut args = self.exprs(args);
            args.push(self.type_of(result, span));
            return self.rt(func, args, result, span);
        }
        if let Some(&(_, func, number)) = NUMBERED.iter().find(|(n, ..)| *n == name) {
            let mut args = self.exprs(args);
            args.push(self.int(number, span));
            return self.rt(func, args, result, span);
        }
        if let Some(short) = name.strip_prefix("math.")
            && let Some(value) = self.math(short, args, result, span)
        {
            return value;
        }
        match name {
            "dict.items" => {
                // The runtime makes the list itself; it wants to know the tuples in it.
                let item = match self.cx.types.get(result) {
                    HostType::List(item) => *item,
                    _ => result,
                };
                let mut args = self.exprs(args);
                args.push(self.type_of(item, span));
                self.rt(dict_items, args, result, span)
            }
            "io.save" => {
                let mut args = self.exprs(args);
                let ty = args.last().map_or(result, |value| value.ty);
                args.push(self.type_of(ty, span));
                self.rt(io_save, args, result, span)
            }
            "tensor.size" => self.tensor_size(&args[0], span),
            "len" => self.len(&args[0], result, span),
            "int.abs" | "float.abs" | "math.fabs" | "abs" => self.abs(&args[0], result, span),
            "min" | "max" => self.least(name == "max", args, result, span),
            "list.sum" => {
                let func = if matches!(ty, Ty::Float) { list_sum_float } else { list_sum_int };
                let args = self.exprs(args);
                self.rt(func, args, result, span)
            }
            _ => {
                let message = format!("the function `{name}` is not supported yet");
                self.cx.diagnostics.push(Diagnostic::new(Code::E0690, span, message));
                self.make(HExprKind::None, result, span)
            }
        }
    }

    /// Elements take the type of the container that they are looked up in.
    fn builtin_args(&mut self, name: &str, args: &[TExpr]) -> Vec<HExpr> {
        let element = match args.first().map(|a| &a.ty) {
            Some(Ty::List(t)) if matches!(name, "list.index" | "list.count") => Some((**t).clone()),
            Some(Ty::Dict(_, v)) if name == "dict.get" => Some((**v).clone()),
            _ => None,
        };
        args.iter()
            .enumerate()
            .map(|(i, e)| match &element {
                Some(want) if i + 1 == args.len() => self.expr_as(e, want),
                _ => self.expr(e),
            })
            .collect()
    }

    fn len(&mut self, e: &TExpr, result: TypeId, span: Span) -> HExpr {
        let value = self.base(e);
        let func = match &e.ty {
            Ty::Str => str_len,
            Ty::Dict(..) => dict_len,
            Ty::Tensor(_) | Ty::AnyTensor => {
                let zero = self.int(0, span);
                return self.rt(tensor_dim, vec![value, zero], result, span);
            }
            Ty::Tuple(ts) => {
                let n = self.int(ts.len() as i64, span);
                return self.once(value, span, |_, _| n);
            }
            _ => list_len,
        };
        self.rt(func, vec![value], result, span)
    }

    fn abs(&mut self, e: &TExpr, ty: TypeId, span: Span) -> HExpr {
        let (value, float) = (self.expr(e), matches!(e.ty, Ty::Float));
        let bool = self.bool_ty();
        self.once(value, span, |b, x| {
            let zero = match float {
                true => b.make(HExprKind::Float(0.0), ty, span),
                false => b.int(0, span),
            };
            let boxed = Box::new(x.clone());
            let test = b.make(HExprKind::Rel(Rel::Lt, boxed.clone(), Box::new(zero.clone())), bool, span);
            let neg = if float { HExprKind::FloatNeg(boxed) } else { HExprKind::IntNeg(boxed) };
            let then = Box::new(b.make(neg, ty, span));
            // Adding 0.0 turns -0.0 into 0.0.
            let same = match float {
                true => {
                    let kind = HExprKind::FloatOp {
                        op: Arith::Add,
                        left: Box::new(x),
                        right: Box::new(zero),
                        int_operands: false,
                    };
                    b.make(kind, ty, span)
                }
                false => x,
            };
            b.make(HExprKind::Cond { test: Box::new(test), then, otherwise: Box::new(same) }, ty, span)
        })
    }

    /// `min(a, b, …)`: the first of equal values.
    fn least(&mut self, largest: bool, args: &[TExpr], ty: TypeId, span: Span) -> HExpr {
        let text = matches!(args[0].ty, Ty::Str);
        let first = self.expr(&args[0]);
        args[1..].iter().fold(first, |best, next| {
            let next = self.expr(next);
            self.once(best, span, |b, best| b.once(next, span, |b, next| b.better(largest, text, best, next, ty, span)))
        })
    }

    fn better(&mut self, largest: bool, text: bool, best: HExpr, next: HExpr, ty: TypeId, span: Span) -> HExpr {
        let (bool, int) = (self.bool_ty(), self.int_ty());
        let rel = if largest { Rel::Gt } else { Rel::Lt };
        let kind = if text {
            let order = self.rt(str_compare, vec![next.clone(), best.clone()], int, span);
            HExprKind::Rel(rel, Box::new(order), Box::new(self.int(0, span)))
        } else {
            HExprKind::Rel(rel, Box::new(next.clone()), Box::new(best.clone()))
        };
        let test = Box::new(self.make(kind, bool, span));
        self.make(HExprKind::Cond { test, then: Box::new(next), otherwise: Box::new(best) }, ty, span)
    }

    fn math(&mut self, name: &str, args: &[TExpr], result: TypeId, span: Span) -> Option<HExpr> {
        let float = self.float_ty();
        if let Some(number) = row(MATH, name) {
            let (number, mut x) = (self.int(number, span), self.exprs(args));
            x.insert(0, number);
            let value = self.rt(math, x, float, span);
            let to_int = result != float;
            return Some(if to_int { self.make(HExprKind::FloatToInt(Box::new(value)), result, span) } else { value });
        }
        if let Some(number) = row(MATH2, name) {
            let (number, mut x) = (self.int(number, span), self.exprs(args));
            x.insert(0, number);
            return Some(self.rt(math2, x, float, span));
        }
        if !matches!(name, "isnan" | "isinf" | "isfinite") {
            return None;
        }
        let value = self.expr(args.first()?);
        let bool = result;
        Some(self.once(value, span, |b, x| match name {
            "isnan" => b.make(HExprKind::Rel(Rel::Ne, Box::new(x.clone()), Box::new(x)), bool, span),
            _ => {
                // x - x is 0 for finite numbers and NaN otherwise.
                let kind = HExprKind::FloatOp {
                    op: Arith::Sub,
                    left: Box::new(x.clone()),
                    right: Box::new(x.clone()),
                    int_operands: false,
                };
                let difference = b.make(kind, float, span);
                let zero = b.make(HExprKind::Float(0.0), float, span);
                let finite =
                    Box::new(b.make(HExprKind::Rel(Rel::Eq, Box::new(difference), Box::new(zero)), bool, span));
                if name == "isfinite" {
                    return *finite;
                }
                let number = Box::new(b.make(HExprKind::Rel(Rel::Eq, Box::new(x.clone()), Box::new(x)), bool, span));
                let infinite = Box::new(b.make(HExprKind::Not(finite), bool, span));
                b.make(HExprKind::And(number, infinite), bool, span)
            }
        }))
    }
}
