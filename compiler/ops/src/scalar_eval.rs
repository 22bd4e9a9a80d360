//! Runs scalar programs over arrays: the interpreter's half of an elementwise function.
//!
//! Values are kept as a structure of arrays: one chunk of lanes per live value, so that each
//! instruction is one loop over a few hundred elements and its dispatch costs nothing.

mod lane;
mod one;
mod step;

pub use lane::Lane;
pub use one::run_one;

use crate::scalar::{Inst, Kind, Program, Val};

/// Elements that one pass over the program handles.
const CHUNK: usize = 256;

/// Runs `program` for `n` elements. Argument `a` has the kind its `Arg` instruction says and
/// `n` elements, or one that stands for all. A program without a result gives an empty lane.
pub fn eval(program: &Program, args: &[Lane], n: usize) -> Lane {
    let Some(result) = program.result else { return Lane::zeros(Kind::Bool, 0) };
    let mut machine = Machine::new(program, result);
    let mut out = Lane::zeros(program.kind(result), n);
    let mut at = 0;
    while at < n {
        let len = CHUNK.min(n - at);
        machine.run(args, at, len, result, &mut out);
        at += len;
    }
    out
}

/// A register file and where each value lives in it.
struct Machine<'a> {
    program: &'a Program,
    registers: Vec<Lane>,
    place: Vec<usize>,
}

impl<'a> Machine<'a> {
    /// Gives every value a register; a register is free again after the last use of its value.
    /// Constants are written here once.
    fn new(program: &'a Program, result: Val) -> Machine<'a> {
        let insts = &program.insts;
        let mut last = vec![0; insts.len()];
        for (at, (inst, _)) in insts.iter().enumerate() {
            inst.operands().for_each(|v| last[v.0 as usize] = at);
        }
        last[result.0 as usize] = usize::MAX;
        let mut machine = Machine { program, registers: Vec::new(), place: Vec::with_capacity(insts.len()) };
        let mut free: Vec<(Kind, usize)> = Vec::new();
        for (at, &(inst, kind)) in insts.iter().enumerate() {
            let constant = matches!(inst, Inst::ConstF(_) | Inst::ConstI(_));
            let reused = free.iter().position(|&(k, _)| k == kind).filter(|_| !constant);
            let place = match reused {
                Some(i) => free.swap_remove(i).1,
                None => {
                    machine.registers.push(Lane::zeros(kind, CHUNK));
                    machine.registers.len() - 1
                }
            };
            machine.place.push(place);
            match inst {
                Inst::ConstF(x) => machine.registers[place].fill_float(x),
                Inst::ConstI(x) => machine.registers[place].fill_int(x),
                _ => {}
            }
            // A register that is freed here may be the next instruction's, not this one's.
            let mut seen: Vec<Val> = Vec::new();
            for v in inst.operands() {
                let (operand, kind) = insts[v.0 as usize];
                let constant = matches!(operand, Inst::ConstF(_) | Inst::ConstI(_));
                if last[v.0 as usize] == at && !constant && !seen.contains(&v) {
                    seen.push(v);
                    free.push((kind, machine.place[v.0 as usize]));
                }
            }
        }
        machine
    }

    fn run(&mut self, args: &[Lane], from: usize, len: usize, result: Val, out: &mut Lane) {
        for (at, &(inst, kind)) in self.program.insts.iter().enumerate() {
            match inst {
                Inst::ConstF(_) | Inst::ConstI(_) => continue,
                Inst::Arg(n) => {
                    let Some(arg) = args.get(n as usize) else { continue };
                    self.registers[self.place[at]].copy_from(arg, from, len);
                    continue;
                }
                _ => {}
            }
            // Taken out while it is written: its operands are other registers.
            let place = self.place[at];
            let mut target = std::mem::replace(&mut self.registers[place], Lane::zeros(kind, 0));
            let get = |v: Val| &self.registers[self.place[v.0 as usize]];
            step::step(inst, &get, &mut target, len);
            self.registers[place] = target;
        }
        out.write(from, &self.registers[self.place[result.0 as usize]], len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapOp;

    #[test]
    fn lengths_around_a_chunk() {
        for n in [0, 1, 255, 256, 257, 1000] {
            let a = Lane::F32((0..n).map(|i| i as f32).collect());
            let b = Lane::F32(vec![1.0]);
            let y = eval(MapOp::add.program(&[Kind::F32; 2]), &[a, b], n);
            assert_eq!(y, Lane::F32((0..n).map(|i| i as f32 + 1.0).collect()));
        }
    }
}
