//! Operands as they are written.

use super::body::{Name, Scope, place};
use super::parser::{Parser, Symbol};
use crate::decode::Builder;
use crate::decode::args::Arg;
use crate::inst::Special;
use crate::lex::integer;

impl<'a> Parser<'_, 'a> {
    /// An operand.
    pub fn argument(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>, depth: u32) -> Result<Arg<'a>, String> {
        if depth > 4 {
            return Err("operand too deep".into());
        }
        if self.take("{") {
            let mut items = Vec::new();
            loop {
                items.push(self.argument(b, scope, depth + 1)?);
                if self.take("}") {
                    return Ok(Arg::List(items));
                }
                if !self.take(",") {
                    return Err("`,` or `}` is expected".into());
                }
            }
        }
        if self.take("[") {
            return self.memory(b, scope, depth);
        }
        if self.take("!") {
            return Ok(Arg::Not(Box::new(self.argument(b, scope, depth + 1)?)));
        }
        if matches!(self.peek_text(), "-") || self.peek_text().starts_with(|c: char| c.is_ascii_digit()) {
            return self.constant();
        }
        let name = self.word().map_err(|_| "an operand is expected".to_string())?;
        let arg = self.named(b, scope, name)?;
        if self.take("|") {
            let second = self.argument(b, scope, depth + 1)?;
            return Ok(Arg::Pair(Box::new(arg), Box::new(second)));
        }
        // A symbol's address plus a number.
        if let (Arg::Fixed(reg), "+" | "-") = (&arg, self.peek_text()) {
            let plus = self.offset()?;
            let value = b.kernel.template[*reg as usize].wrapping_add(plus as u64);
            return if scope.dynamic.contains(reg) {
                Err("an offset from dynamic memory".into())
            } else {
                b.constant(value).map(Arg::Fixed)
            };
        }
        Ok(arg)
    }

    /// `+8`, `-8` or `+-8`, or nothing.
    fn offset(&mut self) -> Result<i64, String> {
        match self.peek_text() {
            "+" => self.next(),
            "-" => None,
            _ => return Ok(0),
        };
        self.signed().map(|v| v as i64).map_err(|_| "an offset is expected".to_string())
    }

    fn memory(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>, depth: u32) -> Result<Arg<'a>, String> {
        let base = match integer(self.peek_text()) {
            Some(value) => {
                self.next();
                Arg::Number(value)
            }
            None => {
                let name = self.word().map_err(|_| "an address is expected".to_string())?;
                self.named(b, scope, name)?
            }
        };
        let offset = self.offset()?;
        if self.take(",") {
            let at = self.argument(b, scope, depth + 1)?;
            if !self.take("]") {
                return Err("`]` is expected".into());
            }
            return Ok(Arg::Tensor(Box::new(base), at.items().to_vec()));
        }
        if self.take("]") { Ok(Arg::Memory(Box::new(base), offset)) } else { Err("`]` is expected".into()) }
    }

    fn constant(&mut self) -> Result<Arg<'a>, String> {
        let negative = self.take("-");
        let text = self.next().map_or("", |t| t.text);
        let wrong = || format!("{text} is no number");
        for (prefix, digits, bits) in [("0f", 8, 32), ("0F", 8, 32), ("0d", 16, 64), ("0D", 16, 64)] {
            if let Some(hex) = text.strip_prefix(prefix).filter(|h| h.len() == digits) {
                let value = u64::from_str_radix(hex, 16).map_err(|_| wrong())?;
                return Ok(Arg::FloatBits(if negative { value ^ 1 << (bits - 1) } else { value }, bits));
            }
        }
        if let Some(value) = integer(text) {
            return Ok(Arg::Number(if negative { value.wrapping_neg() } else { value }));
        }
        if !text.contains('.') {
            return Err(wrong());
        }
        let value: f64 = text.parse().map_err(|_| wrong())?;
        Ok(Arg::Fraction(if negative { -value } else { value }))
    }

    /// What a name stands for; names that are not known may be labels.
    fn named(&mut self, b: &mut Builder<'a>, scope: &mut Scope<'a>, name: &'a str) -> Result<Arg<'a>, String> {
        if name == "_" {
            return Ok(Arg::Sink);
        }
        match scope.find(name) {
            Some(Name::Register(register)) => return Ok(Arg::Register(register)),
            Some(Name::Fixed(reg)) => return Ok(Arg::Fixed(reg)),
            _ => {}
        }
        if let Some(special) = name.strip_prefix('%') {
            return special_register(b, special);
        }
        match self.symbols.get(name) {
            Some(Symbol::Global(address)) => Ok(Arg::Fixed(b.register(*address)?)),
            Some(Symbol::Dynamic) => {
                let reg = b.register(0)?;
                scope.dynamic.push(reg);
                Ok(Arg::Fixed(reg))
            }
            Some(Symbol::Shared(bytes, align)) => {
                if let Some(reg) = scope.shared.get(name) {
                    return Ok(Arg::Fixed(*reg));
                }
                let offset = place(&mut b.kernel.static_shared, (*bytes).into(), *align)?;
                let reg = b.register(offset.into())?;
                scope.shared.insert(name, reg);
                Ok(Arg::Fixed(reg))
            }
            None if name == "WARP_SZ" => Ok(Arg::Number(32)),
            None => Ok(Arg::Name(name)),
        }
    }
}

fn special_register<'a>(b: &mut Builder<'a>, name: &str) -> Result<Arg<'a>, String> {
    let axis = |name: &str, prefix: &str| match name.strip_prefix(prefix)? {
        ".x" => Some(0),
        ".y" => Some(1),
        ".z" => Some(2),
        _ => None,
    };
    let grouped: [(&str, fn(u8) -> Special); 4] =
        [("tid", Special::Tid), ("ntid", Special::Ntid), ("ctaid", Special::Ctaid), ("nctaid", Special::Nctaid)];
    let found = grouped.iter().find_map(|(prefix, make)| axis(name, prefix).map(make));
    let special = match (found, name) {
        (Some(special), _) => special,
        (_, "laneid") => Special::Lane,
        (_, "warpid") => Special::Warp,
        (_, "nwarpid") => Special::Warps,
        (_, "smid") => Special::Sm,
        (_, "nsmid") => Special::Sms,
        (_, "lanemask_eq") => Special::LaneMask(0),
        (_, "lanemask_lt") => Special::LaneMask(1),
        (_, "lanemask_le") => Special::LaneMask(2),
        (_, "lanemask_gt") => Special::LaneMask(3),
        (_, "lanemask_ge") => Special::LaneMask(4),
        (_, "dynamic_smem_size") => Special::DynamicShared,
        (_, "total_smem_size") => Special::TotalShared,
        (_, "clock" | "clock64" | "clock_hi" | "globaltimer" | "globaltimer_lo" | "globaltimer_hi") => {
            return Ok(Arg::Clock);
        }
        (_, "cluster_nctarank" | "nclusterid.x" | "nclusterid.y" | "nclusterid.z") => Special::One,
        (_, "cluster_nctaid.x" | "cluster_nctaid.y" | "cluster_nctaid.z") => Special::One,
        (_, "cluster_ctarank" | "cluster_ctaid.x" | "cluster_ctaid.y" | "cluster_ctaid.z") => Special::Zero,
        (_, name) if name.starts_with("envreg") => Special::Zero,
        _ => return Err(format!("%{name} is not declared")),
    };
    b.special(special).map(Arg::Fixed)
}
