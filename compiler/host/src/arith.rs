//! Operations on numbers. What an operation is says its row in `ops::numbers`; what is written here are ways to have it
//! fast: ints with their checks in flags, checks that are a comparison, and scalar programs that are a few instructions.
//! Everything else is a call that takes the row.

use crate::frame::{Cold, Gen};
use cranelift::codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift::codegen::ir::types::{F64, I64};
use cranelift::codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value};
use tessera_abi::check::Check;
use tessera_abi::rt::RtFn;
use tessera_base::bug;
use tessera_ir::host::{HExpr, HExprKind, SpanId};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::{Cmp, FloatFn, FloatOp, Inst, IntOp, Kind, Program, Val};

/// Scalar programs of more instructions are called.
const SHORT: usize = 10;

/// An operation that is under way: the operands, and where it stands.
#[derive(Clone, Copy)]
struct At {
    op: NumberOp,
    a: Value,
    b: Value,
    span: SpanId,
}

impl Gen<'_, '_> {
    /// The value of an operation; a bool is a word or a byte.
    fn number_raw(&mut self, op: NumberOp, args: &[HExpr], span: SpanId) -> Value {
        let a = self.expr(&args[0]);
        let b = args.get(1).map_or(a, |e| self.expr(e));
        let constant = match args.get(1).map(|e| &e.kind) {
            Some(HExprKind::Int(c)) => Some(*c),
            _ => None,
        };
        let at = At { op, a, b, span };
        match op {
            NumberOp::int_add | NumberOp::int_sub | NumberOp::int_mul => return self.checked(at),
            NumberOp::int_floor_div => return self.floor_div(at, constant),
            NumberOp::int_mod => return self.floor_mod(at, constant),
            NumberOp::int_shl => return self.shift_left(at),
            NumberOp::int_shr => return self.shift_right(at),
            NumberOp::int_pow if constant == Some(2) => {
                let (square, overflow) = self.b.ins().smul_overflow(a, a);
                self.refuse_if(overflow, at);
                return square;
            }
            _ => {}
        }
        if is_short(op.program()) && self.checked_inline(at) {
            self.emitted(op.program(), [a, b])
        } else {
            self.called(at)
        }
    }

    /// An operation on numbers.
    pub fn number(&mut self, op: NumberOp, args: &[HExpr], span: SpanId) -> Value {
        let value = self.number_raw(op, args, span);
        self.as_word_of_bool(value)
    }

    /// The byte of a comparison as a word; others as they are.
    fn as_word_of_bool(&mut self, value: Value) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        if ty.is_int() && ty != I64 { self.b.ins().uextend(I64, value) } else { value }
    }

    /// By a call, which takes the row.
    fn called(&mut self, at: At) -> Value {
        let words = self.operand_words(at);
        let span = self.span(at.span);
        let result = self.call_rt(RtFn::number, &[&words[..], &[span]].concat()).unwrap_or(words[1]);
        self.check();
        match at.op.def().gives {
            Kind::F64 => self.b.ins().bitcast(F64, MemFlagsData::new(), result),
            _ => result,
        }
    }

    /// The operation by its number, and its operands as words.
    fn operand_words(&mut self, at: At) -> [Value; 3] {
        [self.int(at.op.number()), self.word_of(at.a), self.word_of(at.b)]
    }

    /// Where this holds, the operation has no value: the call says why.
    fn refuse_if(&mut self, condition: Value, at: At) {
        let args = self.operand_words(at).to_vec();
        self.fail_if(condition, Cold::Fail { func: RtFn::number, args, span: at.span });
    }

    /// The check of the row where it is a comparison or none; `false` where it is neither, and nothing is written.
    fn checked_inline(&mut self, at: At) -> bool {
        let float = |g: &mut Self, x: f64| g.b.ins().f64const(x);
        let wrong = match at.op.def().check {
            None => return true,
            Some(Check::Neg) => self.b.ins().icmp_imm_s(IntCC::Equal, at.a, i64::MIN),
            Some(Check::IntTrueDiv) => {
                let zero = float(self, 0.0);
                self.b.ins().fcmp(FloatCC::Equal, at.b, zero)
            }
            Some(Check::Sqrt) => {
                let zero = float(self, 0.0);
                self.b.ins().fcmp(FloatCC::LessThan, at.a, zero)
            }
            // Whoever rounds stays within the limits: beyond 2^53 all floats are whole.
            Some(Check::ToInt | Check::Round) => {
                const LIMIT: f64 = 9223372036854775808.0;
                let (low, high) = (float(self, -LIMIT), float(self, LIMIT));
                let above = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, at.a, low);
                let below = self.b.ins().fcmp(FloatCC::LessThan, at.a, high);
                let fits = self.b.ins().band(above, below);
                self.b.ins().icmp_imm_s(IntCC::Equal, fits, 0)
            }
            Some(_) => return false,
        };
        self.refuse_if(wrong, at);
        true
    }

    /// A scalar program of which [`is_short`] holds.
    fn emitted(&mut self, program: &Program, args: [Value; 2]) -> Value {
        let mut values: Vec<Value> = Vec::with_capacity(program.insts.len());
        for &(inst, kind) in &program.insts {
            let v = |v: Val| values[v.0 as usize];
            let value = match inst {
                Inst::Arg(n) => args[usize::from(n)],
                Inst::ConstF(x) => self.b.ins().f64const(x),
                Inst::ConstI(n) => self.int(n),
                Inst::Float(op, x, y) => match op {
                    FloatOp::Add => self.b.ins().fadd(v(x), v(y)),
                    FloatOp::Sub => self.b.ins().fsub(v(x), v(y)),
                    FloatOp::Mul => self.b.ins().fmul(v(x), v(y)),
                    FloatOp::Div => self.b.ins().fdiv(v(x), v(y)),
                    FloatOp::Min => self.b.ins().fmin(v(x), v(y)),
                    FloatOp::Max => self.b.ins().fmax(v(x), v(y)),
                },
                Inst::FloatFn(f, x) => match f {
                    FloatFn::Neg => self.b.ins().fneg(v(x)),
                    FloatFn::Abs => self.b.ins().fabs(v(x)),
                    FloatFn::Sqrt => self.b.ins().sqrt(v(x)),
                    FloatFn::Floor => self.b.ins().floor(v(x)),
                    FloatFn::Ceil => self.b.ins().ceil(v(x)),
                    FloatFn::Round => self.b.ins().nearest(v(x)),
                    FloatFn::Trunc => self.b.ins().trunc(v(x)),
                },
                Inst::Int(op, x, y) => match op {
                    IntOp::Add => self.b.ins().iadd(v(x), v(y)),
                    IntOp::Sub => self.b.ins().isub(v(x), v(y)),
                    IntOp::Mul => self.b.ins().imul(v(x), v(y)),
                    IntOp::Min => self.b.ins().smin(v(x), v(y)),
                    IntOp::Max => self.b.ins().smax(v(x), v(y)),
                    IntOp::And => self.b.ins().band(v(x), v(y)),
                    IntOp::Or => self.b.ins().bor(v(x), v(y)),
                    IntOp::Xor => self.b.ins().bxor(v(x), v(y)),
                    IntOp::FloorDiv | IntOp::FloorMod | IntOp::Shl | IntOp::Shr => {
                        bug!("{op:?} is no instruction of the machine")
                    }
                },
                Inst::Cmp(cmp, x, y) => self.compared(cmp, v(x), v(y)),
                Inst::Select(test, x, y) => {
                    let (test, x, y) = (v(test), v(x), v(y));
                    self.selected(test, x, y)
                }
                Inst::Not(x) => self.b.ins().icmp_imm_s(IntCC::Equal, v(x), 0),
                Inst::Bits(x) => {
                    let to = if kind == Kind::F64 { F64 } else { I64 };
                    self.b.ins().bitcast(to, MemFlagsData::new(), v(x))
                }
                Inst::Convert(x) => match (program.kind(x), kind) {
                    (Kind::I64, Kind::F64) => self.b.ins().fcvt_from_sint(F64, v(x)),
                    (Kind::F64, Kind::I64) => self.b.ins().fcvt_to_sint_sat(I64, v(x)),
                    (Kind::Bool, Kind::I64) => {
                        let bool = v(x);
                        self.as_word_of_bool(bool)
                    }
                    (from, to) => bug!("a conversion from {from:?} to {to:?} in an operation on numbers"),
                },
                Inst::Fma(..) => bug!("a fused product is no instruction of every machine"),
            };
            values.push(value);
        }
        match program.result {
            Some(r) => values[r.0 as usize],
            None => bug!("an operation on numbers has no result"),
        }
    }

    /// The first value where the condition holds, else the second.
    fn selected(&mut self, condition: Value, x: Value, y: Value) -> Value {
        if self.b.func.dfg.value_type(x) != F64 {
            return self.b.ins().select(condition, x, y);
        }
        // A branch that is predicted is faster than a select of floats, which waits for both.
        let end = self.block();
        let result = self.b.append_block_param(end, F64);
        self.b.ins().brif(condition, end, &[BlockArg::Value(x)], end, &[BlockArg::Value(y)]);
        self.enter(end);
        result
    }

    /// A comparison as one byte.
    fn compared(&mut self, cmp: Cmp, a: Value, b: Value) -> Value {
        if self.b.func.dfg.value_type(a) == F64 {
            let cc = match cmp {
                Cmp::Eq => FloatCC::Equal,
                Cmp::Ne => FloatCC::NotEqual,
                Cmp::Lt => FloatCC::LessThan,
                Cmp::Le => FloatCC::LessThanOrEqual,
                Cmp::Gt => FloatCC::GreaterThan,
                Cmp::Ge => FloatCC::GreaterThanOrEqual,
            };
            return self.b.ins().fcmp(cc, a, b);
        }
        let cc = match cmp {
            Cmp::Eq => IntCC::Equal,
            Cmp::Ne => IntCC::NotEqual,
            Cmp::Lt => IntCC::SignedLessThan,
            Cmp::Le => IntCC::SignedLessThanOrEqual,
            Cmp::Gt => IntCC::SignedGreaterThan,
            Cmp::Ge => IntCC::SignedGreaterThanOrEqual,
        };
        self.b.ins().icmp(cc, a, b)
    }

    fn checked(&mut self, at: At) -> Value {
        let (result, overflow) = match at.op {
            NumberOp::int_add => self.b.ins().sadd_overflow(at.a, at.b),
            NumberOp::int_sub => self.b.ins().ssub_overflow(at.a, at.b),
            _ => self.b.ins().smul_overflow(at.a, at.b),
        };
        self.refuse_if(overflow, at);
        result
    }

    fn floor_div(&mut self, at: At, constant: Option<i64>) -> Value {
        match constant {
            Some(c) if c > 0 && c.count_ones() == 1 => self.b.ins().sshr_imm_u(at.a, i64::from(c.trailing_zeros())),
            Some(c) if c != 0 && c != -1 => self.floor_quotient(at.a, at.b),
            _ => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, at.b, 0);
                self.refuse_if(zero, at);
                let least = self.b.ins().icmp_imm_s(IntCC::Equal, at.a, i64::MIN);
                let minus = self.b.ins().icmp_imm_s(IntCC::Equal, at.b, -1);
                let overflow = self.b.ins().band(least, minus);
                self.refuse_if(overflow, at);
                self.floor_quotient(at.a, at.b)
            }
        }
    }

    /// The divisor is not 0 and the quotient fits.
    fn floor_quotient(&mut self, a: Value, b: Value) -> Value {
        let quotient = self.b.ins().sdiv(a, b);
        let product = self.b.ins().imul(quotient, b);
        let rest = self.b.ins().isub(a, product);
        let down = self.needs_floor(rest, b);
        let down = self.b.ins().uextend(I64, down);
        self.b.ins().isub(quotient, down)
    }

    /// A remainder that is not 0 and has the other sign than the divisor.
    fn needs_floor(&mut self, rest: Value, b: Value) -> Value {
        let nonzero = self.b.ins().icmp_imm_s(IntCC::NotEqual, rest, 0);
        let signs = self.b.ins().bxor(rest, b);
        let differ = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
        self.b.ins().band(nonzero, differ)
    }

    fn floor_mod(&mut self, at: At, constant: Option<i64>) -> Value {
        match constant {
            Some(c) if c > 0 && c.count_ones() == 1 => return self.b.ins().band_imm_s(at.a, c - 1),
            Some(c) if c != 0 && c != -1 => {}
            _ => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, at.b, 0);
                self.refuse_if(zero, at);
            }
        }
        let rest = self.b.ins().srem(at.a, at.b);
        let up = self.needs_floor(rest, at.b);
        let zero = self.int(0);
        let add = self.b.ins().select(up, at.b, zero);
        self.b.ins().iadd(rest, add)
    }

    fn shift_left(&mut self, at: At) -> Value {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, at.b, 0);
        self.refuse_if(negative, at);
        let bits = self.int(63);
        let far = self.b.ins().icmp(IntCC::UnsignedGreaterThan, at.b, bits);
        let amount = self.b.ins().select(far, bits, at.b);
        let result = self.b.ins().ishl(at.a, amount);
        let back = self.b.ins().sshr(result, amount);
        let lost = self.b.ins().icmp(IntCC::NotEqual, back, at.a);
        let something = self.b.ins().icmp_imm_s(IntCC::NotEqual, at.a, 0);
        let beyond = self.b.ins().band(far, something);
        let overflow = self.b.ins().bor(lost, beyond);
        self.refuse_if(overflow, at);
        result
    }

    fn shift_right(&mut self, at: At) -> Value {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, at.b, 0);
        self.refuse_if(negative, at);
        let bits = self.int(63);
        let amount = self.b.ins().umin(at.b, bits);
        self.b.ins().sshr(at.a, amount)
    }

    /// Something that a branch tests: a byte or a word that is 0 or not.
    pub fn condition(&mut self, e: &HExpr) -> Value {
        match &e.kind {
            HExprKind::Number(NumberOp::bool_not, args) => {
                let value = self.condition(&args[0]);
                self.b.ins().icmp_imm_s(IntCC::Equal, value, 0)
            }
            HExprKind::Number(op, args) => self.number_raw(*op, args, e.span),
            _ => self.expr(e),
        }
    }

    /// `left and right` (or `or`): the right operand runs only where the left one leaves it open.
    pub fn short_circuit(&mut self, left: &HExpr, right: &HExpr, is_and: bool) -> Value {
        let (more, end) = (self.block(), self.block());
        let result = self.b.append_block_param(end, I64);
        let test = self.condition(left);
        let decided = self.int(i64::from(!is_and));
        let decided = [BlockArg::Value(decided)];
        if is_and {
            self.b.ins().brif(test, more, &[], end, &decided);
        } else {
            self.b.ins().brif(test, end, &decided, more, &[]);
        }
        self.enter(more);
        let known = self.known.len();
        let value = self.expr(right);
        self.known.truncate(known);
        self.b.ins().jump(end, &[BlockArg::Value(value)]);
        self.enter(end);
        result
    }
}

/// Whether a scalar program is a few instructions of the machine.
fn is_short(program: &Program) -> bool {
    let one = |inst: &Inst| match inst {
        Inst::Int(op, ..) => !matches!(op, IntOp::FloorDiv | IntOp::FloorMod | IntOp::Shl | IntOp::Shr),
        Inst::Fma(..) => false,
        _ => true,
    };
    program.insts.len() <= SHORT && program.insts.iter().all(|(inst, _)| one(inst))
}
