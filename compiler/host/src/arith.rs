//! Arithmetic and comparisons of scalars.

use crate::frame::{Cold, Gen};
use cranelift::codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift::codegen::ir::types::{F64, I64};
use cranelift::codegen::ir::{BlockArg, InstBuilder, Value};
use tessera_abi::layout::int_fault;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{Arith, HExpr, HExprKind, Rel, SpanId};

impl Gen<'_, '_> {
    fn int_fault_if(&mut self, condition: Value, fault: i64, a: Value, b: Value, span: SpanId) {
        let number = self.int(fault);
        self.fail_if(condition, Cold::Fail { func: RtFn::fail_int, args: vec![number, a, b], span });
    }

    /// A checked operation on ints.
    pub fn int_op(&mut self, op: Arith, left: &HExpr, right: &HExpr, span: SpanId) -> Value {
        let a = self.expr(left);
        let b = self.expr(right);
        let constant = if let HExprKind::Int(c) = right.kind { Some(c) } else { None };
        match op {
            Arith::Add => self.checked(int_fault::ADD, a, b, span),
            Arith::Sub => self.checked(int_fault::SUB, a, b, span),
            Arith::Mul => self.checked(int_fault::MUL, a, b, span),
            Arith::FloorDiv => self.floor_div(a, b, constant, span),
            Arith::Mod => self.floor_mod(a, b, constant, span),
            Arith::And => self.b.ins().band(a, b),
            Arith::Or => self.b.ins().bor(a, b),
            Arith::Xor => self.b.ins().bxor(a, b),
            Arith::Shl => self.shift_left(a, b, span),
            Arith::Shr => self.shift_right(a, b, span),
            Arith::Pow if constant == Some(2) => self.checked(int_fault::MUL, a, a, span),
            // Division of ints is a float operation; a program never has it here.
            Arith::Pow | Arith::Div => {
                let at = self.span(span);
                let result = self.call_rt(RtFn::int_pow, &[a, b, at]);
                self.check();
                result.unwrap_or(a)
            }
        }
    }

    fn checked(&mut self, fault: i64, a: Value, b: Value, span: SpanId) -> Value {
        let (result, overflow) = match fault {
            int_fault::ADD => self.b.ins().sadd_overflow(a, b),
            int_fault::SUB => self.b.ins().ssub_overflow(a, b),
            _ => self.b.ins().smul_overflow(a, b),
        };
        self.int_fault_if(overflow, fault, a, b, span);
        result
    }

    pub fn int_neg(&mut self, a: Value, span: SpanId) -> Value {
        let least = self.b.ins().icmp_imm_s(IntCC::Equal, a, i64::MIN);
        self.int_fault_if(least, int_fault::NEG, a, a, span);
        self.b.ins().ineg(a)
    }

    fn floor_div(&mut self, a: Value, b: Value, constant: Option<i64>, span: SpanId) -> Value {
        match constant {
            Some(c) if c > 0 && c.count_ones() == 1 => self.b.ins().sshr_imm_u(a, i64::from(c.trailing_zeros())),
            Some(c) if c != 0 && c != -1 => self.floor_quotient(a, b),
            _ => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
                self.int_fault_if(zero, int_fault::DIV_ZERO, a, b, span);
                let least = self.b.ins().icmp_imm_s(IntCC::Equal, a, i64::MIN);
                let minus = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
                let overflow = self.b.ins().band(least, minus);
                self.int_fault_if(overflow, int_fault::FLOOR_DIV, a, b, span);
                self.floor_quotient(a, b)
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

    fn floor_mod(&mut self, a: Value, b: Value, constant: Option<i64>, span: SpanId) -> Value {
        match constant {
            Some(c) if c > 0 && c.count_ones() == 1 => return self.b.ins().band_imm_s(a, c - 1),
            Some(c) if c != 0 && c != -1 => {}
            _ => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
                self.int_fault_if(zero, int_fault::MOD_ZERO, a, b, span);
            }
        }
        let rest = self.b.ins().srem(a, b);
        let up = self.needs_floor(rest, b);
        let zero = self.int(0);
        let add = self.b.ins().select(up, b, zero);
        self.b.ins().iadd(rest, add)
    }

    fn shift_left(&mut self, a: Value, b: Value, span: SpanId) -> Value {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, b, 0);
        self.int_fault_if(negative, int_fault::SHIFT_NEGATIVE, a, b, span);
        let bits = self.int(63);
        let far = self.b.ins().icmp(IntCC::UnsignedGreaterThan, b, bits);
        let amount = self.b.ins().select(far, bits, b);
        let result = self.b.ins().ishl(a, amount);
        let back = self.b.ins().sshr(result, amount);
        let lost = self.b.ins().icmp(IntCC::NotEqual, back, a);
        let something = self.b.ins().icmp_imm_s(IntCC::NotEqual, a, 0);
        let beyond = self.b.ins().band(far, something);
        let overflow = self.b.ins().bor(lost, beyond);
        self.int_fault_if(overflow, int_fault::SHL, a, b, span);
        result
    }

    fn shift_right(&mut self, a: Value, b: Value, span: SpanId) -> Value {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, b, 0);
        self.int_fault_if(negative, int_fault::SHIFT_NEGATIVE, a, b, span);
        let bits = self.int(63);
        let amount = self.b.ins().umin(b, bits);
        self.b.ins().sshr(a, amount)
    }

    /// An operation on floats.
    pub fn float_op(&mut self, op: Arith, left: &HExpr, right: &HExpr, int_operands: bool, span: SpanId) -> Value {
        let a = self.expr(left);
        let b = self.expr(right);
        let func = match op {
            Arith::Add => return self.b.ins().fadd(a, b),
            Arith::Sub => return self.b.ins().fsub(a, b),
            Arith::Mul => return self.b.ins().fmul(a, b),
            Arith::Div => {
                if int_operands {
                    self.refuse_zero(a, b, span);
                }
                return self.b.ins().fdiv(a, b);
            }
            Arith::Pow => return self.call_rt(RtFn::float_pow, &[a, b]).unwrap_or(a),
            Arith::FloorDiv => RtFn::float_floordiv,
            // The rest is for ints only.
            _ => RtFn::float_mod,
        };
        let at = self.span(span);
        let result = self.call_rt(func, &[a, b, at]);
        self.check();
        result.unwrap_or(a)
    }

    fn refuse_zero(&mut self, a: Value, b: Value, span: SpanId) {
        let zero = self.b.ins().f64const(0.0);
        let is_zero = self.b.ins().fcmp(FloatCC::Equal, b, zero);
        let dividend = self.b.ins().fcvt_to_sint_sat(I64, a);
        let divisor = self.int(0);
        self.int_fault_if(is_zero, int_fault::TRUE_DIV_ZERO, dividend, divisor, span);
    }

    /// Truncates; fails for what has no int.
    pub fn float_to_int(&mut self, x: Value, span: SpanId) -> Value {
        const LIMIT: f64 = 9223372036854775808.0;
        let low = self.b.ins().f64const(-LIMIT);
        let high = self.b.ins().f64const(LIMIT);
        let above = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, x, low);
        let below = self.b.ins().fcmp(FloatCC::LessThan, x, high);
        let fits = self.b.ins().band(above, below);
        let wrong = self.b.ins().icmp_imm_s(IntCC::Equal, fits, 0);
        self.fail_if(wrong, Cold::Fail { func: RtFn::fail_to_int, args: vec![x], span });
        self.b.ins().fcvt_to_sint_sat(I64, x)
    }

    /// A comparison as one byte, for branches.
    pub fn compare(&mut self, rel: Rel, left: &HExpr, right: &HExpr) -> Value {
        let a = self.expr(left);
        let b = self.expr(right);
        if self.b.func.dfg.value_type(a) == F64 {
            let cc = match rel {
                Rel::Eq => FloatCC::Equal,
                Rel::Ne => FloatCC::NotEqual,
                Rel::Lt => FloatCC::LessThan,
                Rel::Le => FloatCC::LessThanOrEqual,
                Rel::Gt => FloatCC::GreaterThan,
                Rel::Ge => FloatCC::GreaterThanOrEqual,
            };
            return self.b.ins().fcmp(cc, a, b);
        }
        let cc = match rel {
            Rel::Eq => IntCC::Equal,
            Rel::Ne => IntCC::NotEqual,
            Rel::Lt => IntCC::SignedLessThan,
            Rel::Le => IntCC::SignedLessThanOrEqual,
            Rel::Gt => IntCC::SignedGreaterThan,
            Rel::Ge => IntCC::SignedGreaterThanOrEqual,
        };
        self.b.ins().icmp(cc, a, b)
    }

    /// Something that a branch tests: a byte or a word that is 0 or not.
    pub fn condition(&mut self, e: &HExpr) -> Value {
        match &e.kind {
            HExprKind::Rel(rel, a, b) => self.compare(*rel, a, b),
            HExprKind::Not(inner) => {
                let value = self.condition(inner);
                self.b.ins().icmp_imm_s(IntCC::Equal, value, 0)
            }
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
