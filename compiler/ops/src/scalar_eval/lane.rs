use crate::scalar::Kind;

/// An array of values of one kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Lane {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    Bool(Vec<bool>),
}

/// Runs `$body` with `$v` bound to the vector of whichever kind `$lane` has.
macro_rules! each {
    ($lane:expr, $v:ident => $body:expr) => {
        match $lane {
            Lane::F32($v) => $body,
            Lane::F64($v) => $body,
            Lane::I64($v) => $body,
            Lane::I32($v) => $body,
            Lane::I16($v) => $body,
            Lane::I8($v) => $body,
            Lane::U8($v) => $body,
            Lane::Bool($v) => $body,
        }
    };
}

/// The same for two lanes of one kind; lanes of different kinds run `$otherwise`.
macro_rules! pair {
    ($a:expr, $b:expr, $x:ident, $y:ident => $body:expr, $otherwise:expr) => {
        match ($a, $b) {
            (Lane::F32($x), Lane::F32($y)) => $body,
            (Lane::F64($x), Lane::F64($y)) => $body,
            (Lane::I64($x), Lane::I64($y)) => $body,
            (Lane::I32($x), Lane::I32($y)) => $body,
            (Lane::I16($x), Lane::I16($y)) => $body,
            (Lane::I8($x), Lane::I8($y)) => $body,
            (Lane::U8($x), Lane::U8($y)) => $body,
            (Lane::Bool($x), Lane::Bool($y)) => $body,
            _ => $otherwise,
        }
    };
}

pub(super) use pair;

impl Lane {
    /// `n` zeros.
    pub fn zeros(kind: Kind, n: usize) -> Lane {
        match kind {
            Kind::F32 => Lane::F32(vec![0.0; n]),
            Kind::F64 => Lane::F64(vec![0.0; n]),
            Kind::I64 => Lane::I64(vec![0; n]),
            Kind::I32 => Lane::I32(vec![0; n]),
            Kind::I16 => Lane::I16(vec![0; n]),
            Kind::I8 => Lane::I8(vec![0; n]),
            Kind::U8 => Lane::U8(vec![0; n]),
            Kind::Bool => Lane::Bool(vec![false; n]),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Lane::F32(_) => Kind::F32,
            Lane::F64(_) => Kind::F64,
            Lane::I64(_) => Kind::I64,
            Lane::I32(_) => Kind::I32,
            Lane::I16(_) => Kind::I16,
            Lane::I8(_) => Kind::I8,
            Lane::U8(_) => Kind::U8,
            Lane::Bool(_) => Kind::Bool,
        }
    }

    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads little-endian elements of the kind's own width; bool is a byte, true if not 0.
    pub fn from_bytes(kind: Kind, bytes: &[u8]) -> Lane {
        fn read<const N: usize, T>(bytes: &[u8], f: fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|&b| f(b)).collect()
        }
        match kind {
            Kind::F32 => Lane::F32(read(bytes, f32::from_le_bytes)),
            Kind::F64 => Lane::F64(read(bytes, f64::from_le_bytes)),
            Kind::I64 => Lane::I64(read(bytes, i64::from_le_bytes)),
            Kind::I32 => Lane::I32(read(bytes, i32::from_le_bytes)),
            Kind::I16 => Lane::I16(read(bytes, i16::from_le_bytes)),
            Kind::I8 => Lane::I8(read(bytes, i8::from_le_bytes)),
            Kind::U8 => Lane::U8(bytes.to_vec()),
            Kind::Bool => Lane::Bool(bytes.iter().map(|&b| b != 0).collect()),
        }
    }

    /// The elements as little-endian bytes; bool is 0 or 1.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Lane::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Lane::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Lane::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Lane::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Lane::I16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Lane::I8(v) => v.iter().map(|&x| x as u8).collect(),
            Lane::U8(v) => v.clone(),
            Lane::Bool(v) => v.iter().map(|&x| x as u8).collect(),
        }
    }

    pub(super) fn fill_float(&mut self, x: f64) {
        match self {
            Lane::F32(v) => v.fill(x as f32),
            Lane::F64(v) => v.fill(x),
            _ => {}
        }
    }

    pub(super) fn fill_int(&mut self, x: i64) {
        match self {
            Lane::I64(v) => v.fill(x),
            Lane::I32(v) => v.fill(x as i32),
            Lane::I16(v) => v.fill(x as i16),
            Lane::I8(v) => v.fill(x as i8),
            Lane::U8(v) => v.fill(x as u8),
            Lane::Bool(v) => v.fill(x != 0),
            Lane::F32(_) | Lane::F64(_) => {}
        }
    }

    /// The first `len` elements become those of `arg` from `from` on; an `arg` of one element
    /// is repeated. Kinds are equal in a correct program.
    pub(super) fn copy_from(&mut self, arg: &Lane, from: usize, len: usize) {
        let single = arg.len() == 1;
        pair!(self, arg, to, x => if single {
            to[..len].fill(x[0]);
        } else {
            to[..len].copy_from_slice(&x[from..from + len]);
        }, debug_assert!(false, "an argument has another kind than the program says"));
    }

    /// Writes the first `len` elements of `values` at `at`.
    pub(super) fn write(&mut self, at: usize, values: &Lane, len: usize) {
        pair!(self, values, to, x => to[at..at + len].copy_from_slice(&x[..len]), ());
    }
}
