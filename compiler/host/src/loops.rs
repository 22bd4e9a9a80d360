//! Loops. Their back edges look at the interrupt flag.

use crate::frame::{Cold, Gen, Loop, plain};
use cranelift::codegen::ir::condcodes::IntCC;
use cranelift::codegen::ir::types::{I8, I64};
use cranelift::codegen::ir::{Block, BlockArg, InstBuilder, Value};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{HExpr, HExprKind, HStmt, LocalId, SpanId};

impl Gen<'_, '_> {
    /// Goes to the next round of the innermost loop, or out of it.
    pub fn leave_loop(&mut self, target: fn(&Loop) -> Block) -> bool {
        // The checker refuses `break` and `continue` outside of loops.
        if let Some(inner) = self.loops.last() {
            let (block, held) = (target(inner), inner.held);
            self.release_held(held);
            self.b.ins().jump(block, &[]);
        }
        false
    }

    /// Stops the program if the user asked for it.
    fn poll(&mut self, span: SpanId) {
        let flag = self.b.ins().load(I64, plain(), self.cx, layout::context::INTERRUPT);
        let flag = self.b.ins().load(I8, plain(), flag, 0);
        self.fail_if(flag, Cold::Interrupted { span });
    }

    /// Writes the body and enters the block where a round ends.
    fn round(&mut self, body: &[HStmt], next: Block, end: Block) {
        let known = self.known.len();
        self.loops.push(Loop { next, end, held: self.held_count() });
        if self.stmts(body) {
            self.b.ins().jump(next, &[]);
        }
        self.loops.pop();
        self.known.truncate(known);
        self.enter(next);
    }

    pub fn while_loop(&mut self, test: &HExpr, body: &[HStmt], span: SpanId) -> bool {
        let (head, start, next, end) = (self.block(), self.block(), self.block(), self.block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        // The test runs in every round: what it assigns is no first assignment.
        self.loops.push(Loop { next, end, held: self.held_count() });
        let test = self.condition(test);
        self.loops.pop();
        self.b.ins().brif(test, start, &[], end, &[]);
        self.enter(start);
        self.round(body, next, end);
        self.poll(span);
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.enter(end);
        true
    }

    pub fn for_range(&mut self, var: LocalId, [start, stop, step]: [&HExpr; 3], body: &[HStmt], span: SpanId) {
        let first = self.expr(start);
        let last = self.expr(stop);
        if let HExprKind::Int(1) = step.kind {
            return self.count_up(var, first, last, body, span);
        }
        let by = self.expr(step);
        let rounds = self.rounds(first, last, by, span);
        let (head, run, next, end) = (self.block(), self.block(), self.block(), self.block());
        let (left, at) = (self.b.append_block_param(head, I64), self.b.append_block_param(head, I64));
        self.b.ins().jump(head, &[BlockArg::Value(rounds), BlockArg::Value(first)]);
        self.b.switch_to_block(head);
        self.b.ins().brif(left, run, &[], end, &[]);
        self.enter(run);
        self.set_local(var, at);
        self.round(body, next, end);
        self.poll(span);
        let left = self.b.ins().iadd_imm_s(left, -1);
        // After the last round this may wrap, and is not used.
        let at = self.b.ins().iadd(at, by);
        self.b.ins().jump(head, &[BlockArg::Value(left), BlockArg::Value(at)]);
        self.b.seal_block(head);
        self.enter(end);
    }

    /// How many rounds a range has; a step of 0 fails.
    fn rounds(&mut self, first: Value, last: Value, by: Value, span: SpanId) -> Value {
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, by, 0);
        self.fail_if(zero, Cold::Fail { func: RtFn::fail_step, args: vec![], span });
        let up = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, by, 0);
        let low = self.b.ins().select(up, first, last);
        let high = self.b.ins().select(up, last, first);
        let negated = self.b.ins().ineg(by);
        let width = self.b.ins().select(up, by, negated);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, low, high);
        // Unsigned, as the distance may need all 64 bits.
        let distance = self.b.ins().isub(high, low);
        let distance = self.b.ins().iadd_imm_s(distance, -1);
        let rounds = self.b.ins().udiv(distance, width);
        let rounds = self.b.ins().iadd_imm_s(rounds, 1);
        let none = self.int(0);
        self.b.ins().select(some, rounds, none)
    }

    fn count_up(&mut self, var: LocalId, first: Value, last: Value, body: &[HStmt], span: SpanId) {
        let (head, run, next, end) = (self.block(), self.block(), self.block(), self.block());
        let at = self.b.append_block_param(head, I64);
        self.b.ins().jump(head, &[BlockArg::Value(first)]);
        self.b.switch_to_block(head);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, at, last);
        self.b.ins().brif(more, run, &[], end, &[]);
        self.enter(run);
        self.set_local(var, at);
        self.round(body, next, end);
        self.poll(span);
        let at = self.b.ins().iadd_imm_s(at, 1);
        self.b.ins().jump(head, &[BlockArg::Value(at)]);
        self.b.seal_block(head);
        self.enter(end);
    }

    pub fn for_list(&mut self, var: LocalId, list: &HExpr, body: &[HStmt], span: SpanId) {
        let object = self.expr(list);
        let before = self.held_count();
        self.hold(object);
        // The list has an owner here, so no one changes it in place.
        let len = self.b.ins().load(I64, plain(), object, layout::list::LEN);
        let data = self.b.ins().load(I64, plain(), object, layout::list::DATA);
        let (head, run, next, end) = (self.block(), self.block(), self.block(), self.block());
        let at = self.b.append_block_param(head, I64);
        let zero = self.int(0);
        self.b.ins().jump(head, &[BlockArg::Value(zero)]);
        self.b.switch_to_block(head);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, at, len);
        self.b.ins().brif(more, run, &[], end, &[]);
        self.enter(run);
        let offset = self.b.ins().ishl_imm_u(at, 3);
        let address = self.b.ins().iadd(data, offset);
        let ty = self.local_type(var);
        let machine = self.unit.machine_type(ty);
        let value = self.b.ins().load(machine, plain(), address, 0);
        self.retain(value, ty);
        self.loops.push(Loop { next, end, held: self.held_count() });
        self.set_local(var, value);
        self.loops.pop();
        self.round(body, next, end);
        self.poll(span);
        let at = self.b.ins().iadd_imm_s(at, 1);
        self.b.ins().jump(head, &[BlockArg::Value(at)]);
        self.b.seal_block(head);
        self.enter(end);
        self.drop_held(before);
        self.call_rt(RtFn::release, &[object]);
    }
}
