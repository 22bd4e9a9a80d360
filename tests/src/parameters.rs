//! Calls with an int parameter left open, written `@`: of every operator of the table and every function of the host
//! library that takes an int, of slices, indices, constructors and readers of files.

use tessera_core::builtins::{self, Builtin, Fallback, Kind};
use tessera_ops::surface::{Default, OpDef, Param, ParamKind, all};

/// What the calls use.
pub const SETUP: &str = "import math\n\
    x = op.arange(12.0).reshape(2, 6)\n\
    v = op.arange(7.0)\n\
    i = op.array([1, 0, 2])\n\
    key = random.key(1)\n\
    names = [\"a\", \"b\", \"c\"]\n\
    table = {1: \"one\", 7: \"seven\"}\n\
    io.write_text(\"numbers.csv\", \"1,2\\n3,4\\n5,6\\n\")\n\
    io.write_npy(\"six.npy\", op.arange(6.0))\n";

/// An argument of a row that follows from neither kind nor name.
const GIVEN: &[(&str, &str, &str)] = &[
    ("conv1d", "x", "op.arange(14.0).reshape(1, 2, 7)"),
    ("conv1d", "weight", "op.ones((2, 2, 3))"),
    ("conv2d", "x", "op.arange(70.0).reshape(1, 2, 7, 5)"),
    ("conv2d", "weight", "op.ones((2, 2, 3, 2))"),
    ("conv3d", "x", "op.arange(90.0).reshape(1, 2, 3, 3, 5)"),
    ("conv3d", "weight", "op.ones((2, 2, 1, 2, 3))"),
    ("conv_transpose2d", "x", "op.arange(30.0).reshape(1, 2, 3, 5)"),
    ("conv_transpose2d", "weight", "op.ones((2, 2, 3, 2))"),
    ("max_pool", "x", "op.arange(35.0).reshape(7, 5)"),
    ("avg_pool", "x", "op.arange(35.0).reshape(7, 5)"),
    ("dequantize", "blocks", "op.quantize(op.ones((4, 6)), \"fp8_e4m3\", block=1)[0]"),
    ("dequantize", "scales", "op.quantize(op.ones((4, 6)), \"fp8_e4m3\", block=1)[1]"),
    ("quantize", "format", "\"fp8_e4m3\""),
    ("fake_quantize", "format", "\"fp8_e4m3\""),
    ("batch_norm", "mean", "op.zeros((6,))"),
    ("batch_norm", "var", "op.ones((6,))"),
    ("layer_norm", "x", "op.arange(6.0).reshape(6, 1)"),
    ("rms_norm", "x", "op.arange(6.0).reshape(6, 1)"),
    ("cross_entropy", "targets", "op.array([1, 3])"),
    ("gather", "index", "op.array([[1, 0], [0, 1]])"),
    ("scatter_add", "index", "op.array([[1, 0], [0, 1]])"),
    ("take_along_axis", "indices", "op.array([[1], [0]])"),
    ("take", "indices", "i"),
    ("take_along_axis", "axis", "1"),
    ("one_hot", "ids", "i"),
    ("expand", "x", "op.arange(2.0).reshape(2, 1)"),
    ("broadcast_to", "x", "op.arange(2.0).reshape(2, 1)"),
    ("squeeze", "x", "op.ones((1, 3, 1))"),
    ("tensordot", "y", "x"),
    ("diag", "x", "op.ones((3, 4))"),
    ("moe_dispatch", "gates", "op.array([[0.5, 0.25], [0.125, 1.0]])"),
    ("moe_combine", "x", "op.ones((2, 2, 6))"),
    ("moe_combine", "gates", "op.array([[0.5, 0.25], [0.125, 1.0]])"),
    ("slice", "start", "(0, 0)"),
    ("slice", "stop", "(2, 6)"),
    ("bincount", "x", "op.array([0, 0])"),
    ("segment_sum", "ids", "op.array([0, 0])"),
    ("segment_mean", "ids", "op.array([0, 0])"),
    ("segment_max", "ids", "op.array([0, 0])"),
    ("segment_min", "ids", "op.array([0, 0])"),
    ("searchsorted", "sorted", "v"),
    ("quantile", "q", "0.5"),
    ("percentile", "q", "50.0"),
    ("random.dirichlet", "alpha", "v + 1.0"),
    ("random.categorical", "logits", "v"),
    ("random.gamma", "a", "2.0"),
    ("random.loggamma", "a", "2.0"),
    ("random.chisquare", "df", "2.0"),
    ("random.t", "df", "2.0"),
    ("random.beta", "a", "2.0"),
    ("random.beta", "b", "2.0"),
    ("random.geometric", "p", "0.5"),
    ("random.binomial", "n", "7"),
    ("random.binomial", "p", "0.5"),
    ("random.truncated_normal", "lower", "-1.0"),
    ("random.truncated_normal", "upper", "2.0"),
    ("random.randint", "low", "0"),
    ("random.randint", "high", "9"),
    ("where", "condition", "x > 2.0"),
    ("complex", "real", "x"),
    ("complex", "imag", "x"),
    ("full", "value", "1"),
    ("linspace", "start", "0"),
    ("linspace", "stop", "3"),
    ("fft2", "axes", "(0, 1)"),
    ("fft2", "s", "(2, 6)"),
    ("full_like", "value", "1"),
    ("irfft", "x", "op.rfft(x)"),
    ("ifft", "x", "op.fft(x)"),
    ("irfft2", "x", "op.rfft2(x)"),
    ("ifft2", "x", "op.fft2(x)"),
    ("moveaxis", "destination", "0"),
    ("random.fold_in", "data", "3"),
    ("random.key", "seed", "3"),
];

/// Calls around int parameters that the tables do not have, or that need more than one at once.
const WRITTEN: &[&str] = &[
    // Ranges.
    "op.arange(-@, @)",
    "op.arange(0, 5, @)",
    "op.arange(5, 0, @)",
    "op.arange(@, @ + 3)",
    "op.arange(@, @ - 3, -1)",
    "op.arange(0, @, @)",
    "len(range(@))",
    "range(@, @ + 2)",
    "range(@, @ - 2, -1)",
    "range(0, 5, @)",
    "range(5, 0, @)",
    "list(range(3))[@]",
    "[n for n in range(0, @, @)]",
    "[n for n in range(3, @, @)]",
    // Slices and indices of tensors.
    "v[@:]",
    "v[:@]",
    "v[::@]",
    "v[@::-1]",
    "v[:@:-1]",
    "v[@:@]",
    "v[@::@]",
    "v[:@:@]",
    "v[@]",
    "x[@]",
    "x[1, @]",
    "x[@:, @]",
    "x[:, @:]",
    "x[:, ::@]",
    "x[i[:1], @]",
    "x[:, i][@:]",
    "v[op.array([@, 0])]",
    "(v + 1.0)[@:]",
    "(v + 1.0)[::@] * 2.0",
    "op.slice(v, (0,), (7,), (@,))",
    "op.split(v, [@])[0]",
    "op.split(v, [1, @])[1]",
    "op.split(x, @, axis=1)[0]",
    "x.shape[@]",
    "x.reshape(@, 3)",
    "x.reshape(@, -1)",
    "x.reshape(-1, @)",
    "x.reshape(@, @)",
    "op.zeros((@, @))",
    "op.zeros((3,), dtype=u8) + @",
    "op.arange(6).to(i16) * @",
    "op.zeros((0, @))",
    "op.ones((2, @)).sum()",
    "op.zeros((@, 4294967297)).shape",
    "op.full((3,), @)",
    "op.full((3,), @, dtype=i32)",
    "op.array([@, 1])",
    "op.array([@, 1], dtype=f32)",
    "op.array([@, 1], dtype=i32)",
    "op.arange(3) + @",
    "op.arange(3) * @",
    "op.arange(3) // @",
    "op.arange(3) % @",
    "op.arange(3) << @",
    "op.arange(3) >> @",
    "op.arange(3) ** @",
    "x ** @",
    "op.clip(op.arange(9), @, 5)",
    "op.pad(x, ((0, @), (0, 0)))",
    "op.pad(x, ((@, 0), (0, 0)))",
    "op.pad(v, (@, @))",
    "op.tile(v, (@, 2))",
    "op.tile(x, (@, @))",
    "op.eye(3, k=@)",
    "op.eye(@, @).shape",
    "op.tril(x, k=@)",
    "op.roll(x, (@, @), (0, 1))",
    "op.transpose(x, (@, 0))",
    "op.linspace(@, 1, 3)",
    "op.linspace(0, 1, @)",
    "op.conv1d(op.ones((1, 1, 5)), op.ones((1, 1, 2)), padding=@, stride=@)",
    "op.conv1d(op.ones((1, 1, 5)), op.ones((1, 1, 2)), padding=(@, 1), dilation=@)",
    "op.conv1d(op.ones((1, 1, 5)), op.ones((1, 1, 1)), dilation=@, stride=@)",
    "op.conv_transpose2d(op.ones((1, 1, 2, 2)), op.ones((1, 1, 2, 2)), stride=@, padding=@)",
    "op.conv_transpose2d(op.ones((1, 1, 1, 1)), op.ones((1, 1, 1, 1)), stride=@, padding=0)",
    "op.conv_transpose2d(op.ones((1, 1, 2, 2)), op.ones((1, 1, 2, 2)), stride=@, output_padding=1)",
    "op.conv_transpose2d(op.ones((1, 1, 2, 2)), op.ones((1, 1, 2, 2)), dilation=@, padding=@)",
    "op.max_pool(op.ones((5,)), (@,), stride=@)",
    "op.max_pool(op.ones((5,)), (2,), padding=@)",
    "random.randint(key, (3,), @, @)",
    "random.randint(key, (3,), @, 5)",
    "random.randint(key, (3,), 0, 9, dtype=i32) + @",
    "random.permutation(key, @).shape",
    "random.choice(key, @, (2,))",
    "random.choice(key, 5, (@,))",
    "random.choice(key, 5, (@,), replace=False)",
    "random.choice(key, @, p=op.ones((3,)))",
    "random.permutation(key, @, p=op.ones((3,)))",
    "random.gamma(key, 2.0, (@, 2)).shape",
    "random.categorical(key, v, shape=(@,)).shape",
    "random.normal(key, (@, 2)).shape",
    // Host values.
    "names[@]",
    "names[@:]",
    "names[:@]",
    "names[::@]",
    "names[@::-1]",
    "names[:@:-1]",
    "len(names * @)",
    "len(@ * names)",
    "len(\"ab\" * @)",
    "len(\"\" * @)",
    "len([] * @)",
    "\"naïve\"[@]",
    "\"naïve\"[@:]",
    "\"naïve\"[:@]",
    "\"naïve\"[::@]",
    "\"naïve\"[@::-1]",
    "(1, \"a\", 2.5)[@:]",
    "(1, \"a\", 2.5)[::@]",
    "(1, \"a\", 2.5)[@]",
    "sys.args[@:]",
    "abs(@)",
    "-@",
    "~@",
    "@ + @",
    "@ - @ - @ - @",
    "@ * @",
    "@ // -1",
    "@ % -1",
    "7 // @",
    "7 % @",
    "divmod(@, -1)",
    "@ ** 2",
    "2 ** @",
    "(-1) ** @",
    "pow(3, @)",
    "1 << @",
    "0 << @",
    "5 >> @",
    "@ >> 1",
    "2.0 ** @",
    "@ / @",
    "int(float(@))",
    "round(2.5, @)",
    "round(1234.5, @)",
    "sum([@, @])",
    "min(@, 0)",
    "max([@, 0])",
    "sorted([@, 0, 1])",
    "str(@)",
    "f\"{@:,}\"",
    "f\"{@:x}\"",
    "f\"{@:_b}\"",
    "chr(@)",
    "math.gcd(@, @)",
    "math.gcd(@, 6)",
    "math.floor(float(@))",
    "table.get(@, \"none\")",
    "names.index(str(@))",
    "[1, 2].count(@)",
    "bool(@)",
    "int(str(@))",
    "float(@)",
    "names == names * @",
    // Files.
    "io.read_csv(\"numbers.csv\", skip=@)",
];

/// Statements with an open int, and what to show behind them.
const STATEMENTS: &[(&str, &str)] = &[
    ("y = op.zeros((3,)); y[@] = 1.0", "y"),
    ("y = op.zeros((3,), dtype=i32); y[0] = @", "y"),
    ("y = op.zeros((3,), dtype=u8) + 1; y[1:] = @", "y"),
    ("y = op.zeros((3,)); y[@:] = 1.0", "y"),
    ("y = op.zeros((3,)); y[:@] = 1.0", "y"),
    ("y = op.zeros((3,)); y[::@] = 1.0", "y"),
    ("y = op.zeros((3,)); y[@::-1] = 1.0", "y"),
    ("y = op.zeros((3,)) + v[:3]; y[@:] += 1.0", "y"),
    ("y = [1, 2, 3]; y[@] = 5", "y"),
    ("y = [1, 2, 3]; y.insert(@, 5)", "y"),
    ("y = [1, 2, 3]; z = y.pop(@)", "(y, z)"),
    ("y = [1, 2, 3]; y.remove(@)", "y"),
    ("y = {1: 2}; y[@] = 5", "y"),
    ("y = {1: 2}; z = y.pop(@)", "y"),
    ("sys.progress(@, @)", "0"),
    ("sys.progress(0, @)", "0"),
    ("sys.progress(@, 5)", "0"),
];

/// Parameters for which an int far outside means what one just outside does, by row, and written calls of them by how
/// they begin.
const SATURATING: &[(&str, &str)] = &[
    ("tril", "k"),
    ("triu", "k"),
    ("tri", "k"),
    ("eye", "k"),
    ("diag", "k"),
    ("trace", "offset"),
    ("conv1d", "stride"),
    ("conv2d", "stride"),
    ("conv3d", "stride"),
    ("conv1d", "dilation"),
    ("conv2d", "dilation"),
    ("conv3d", "dilation"),
    ("max_pool", "stride"),
    ("avg_pool", "stride"),
    ("max_pool", "padding"),
    ("quantize", "block"),
    ("fake_quantize", "block"),
    ("slice", "start"),
    ("slice", "stop"),
    ("slice", "step"),
    ("arange", "step"),
];
const SATURATING_CALLS: &[&str] = &[
    "op.arange(0, 5, @)",
    "op.arange(5, 0, @)",
    "range(0, 5, @)",
    "range(5, 0, @)",
    "v[",
    "x[",
    "(v + 1.0)[",
    "op.slice(",
    "op.split(v",
    "names[",
    "\"naïve\"[",
    "(1, \"a\", 2.5)[",
    "sys.args[",
    "op.tril(",
    "op.eye(3, k=",
    "\"a b a\".split(",
    "\"a b a\".replace(",
    "round(",
    "io.read_csv(",
    "5 >> @",
];

/// A call with one int open.
pub struct Open {
    /// The row and the parameter; empty for what is written out.
    pub of: String,
    /// Statements before.
    pub before: String,
    /// An expression.
    pub call: String,
    /// An int far outside means what one just outside does.
    pub saturates: bool,
}

impl Open {
    /// The input of a session that prints the mark and then what the call gives with the int.
    pub fn with(&self, mark: &str, int: &str) -> String {
        let before = self.before.replace('@', int);
        let call = self.call.replace('@', int);
        let gap = if before.is_empty() { "" } else { "; " };
        format!("{before}{gap}print(\"{mark}\", {call})\n")
    }
}

/// All of them.
pub fn open() -> Vec<Open> {
    let mut out = vec![];
    let mut add = |of: String, before: &str, call: String, saturates: bool| {
        let saturates = saturates || SATURATING_CALLS.iter().any(|begin| call.starts_with(begin));
        out.push(Open { of, before: before.into(), call, saturates });
    };
    for def in all().filter(|d| d.unsupported.is_none()) {
        for (at, p) in def.params.iter().enumerate() {
            let saturates = SATURATING.contains(&(def.name, p.name));
            for call in probes(def, at, p) {
                add(format!("op.{} {}", def.name, p.name), "", call, saturates);
            }
        }
    }
    // Tokenisers are numbers that reading one gives, and `exit` ends the session.
    let other = |name: &str| !name.starts_with("io.") && !name.starts_with("sys.");
    for row in builtins::rows().filter(|row| other(row.name())) {
        for (at, p) in row.params().unwrap_or_default().iter().enumerate().filter(|(_, p)| p.kind == Kind::Int) {
            add(format!("{} {}", row.name(), p.name), "", host_call(row, at), false);
        }
    }
    WRITTEN.iter().for_each(|call| add(String::new(), "", (*call).into(), false));
    for (before, call) in STATEMENTS {
        let bounds = ["@:", ":@", "insert"].iter().any(|part| before.contains(part));
        add(String::new(), before, (*call).into(), bounds);
    }
    out
}

/// Calls of an operator with the parameter open.
fn probes(def: &'static OpDef, at: usize, p: &Param) -> Vec<String> {
    let forms: &[&str] = match p.kind {
        ParamKind::Int | ParamKind::Axis | ParamKind::Number | ParamKind::IntOrTensor => &["@"],
        ParamKind::Axes => &["@", "(@, 0)", "(@,)"],
        ParamKind::Ints => &["@", "(@, 1)", "(@,)"],
        ParamKind::Shape => &["(@,)", "(2, @)", "(@, @)"],
        ParamKind::Pairs => &["@", "(0, @)", "((@, 0), (0, 1))"],
        ParamKind::Operand if matches!(p.default, Default::Int(_)) => &["@"],
        ParamKind::Operand
            if ["low", "high", "seed", "data", "value", "start", "stop", "min", "max"].contains(&p.name) =>
        {
            &["@"]
        }
        _ => return vec![],
    };
    forms.iter().map(|form| op_call(def, at, form)).collect()
}

fn op_call(def: &'static OpDef, at: usize, form: &str) -> String {
    let mut args = vec![];
    for (i, p) in def.params.iter().enumerate() {
        let given = GIVEN.iter().find(|(row, name, _)| *row == def.name && *name == p.name).map(|(_, _, text)| *text);
        if i == at {
            args.push(format!("{}={form}", p.name));
        } else if let Some(text) = given {
            args.push(format!("{}={text}", p.name));
        } else if p.default == Default::Required {
            args.push(format!("{}={}", p.name, usual(p.kind)));
        }
    }
    // Operands of several tensors stand at their place.
    let name = if def.name.starts_with("random.") { def.name.to_owned() } else { format!("op.{}", def.name) };
    format!("{name}({})", args.join(", "))
}

/// An argument of a kind that most rows take.
fn usual(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Tensor | ParamKind::Operand => "x",
        ParamKind::Tensors => "[x, x]",
        ParamKind::Axis | ParamKind::Axes => "0",
        ParamKind::Shape => "(3, 4)",
        ParamKind::Int | ParamKind::IntOrTensor | ParamKind::Number | ParamKind::Ints | ParamKind::Pairs => "2",
        ParamKind::Float => "0.5",
        ParamKind::Bool => "True",
        ParamKind::DType => "f32",
        ParamKind::Str => "\"\"",
        ParamKind::Nested => "[1.0]",
        ParamKind::Key => "key",
    }
}

fn host_call(row: Builtin, at: usize) -> String {
    let mut args: Vec<String> = vec![];
    for (i, p) in row.params().unwrap_or_default().iter().enumerate() {
        args.push(if i == at {
            "@".into()
        } else {
            match (p.kind, p.fallback) {
                (_, Fallback::Int(n)) => n.to_string(),
                (_, Fallback::Str(_)) => "\" \"".into(),
                (Kind::Int, _) => "6".into(),
                (Kind::Str, _) if p.name == "old" || p.name == "sub" => "\"a\"".into(),
                (Kind::Str, _) => "\"a b a\"".into(),
                (Kind::Float, _) => "0.5".into(),
                _ => "x".into(),
            }
        });
    }
    match row.name().strip_prefix("str.") {
        Some(method) => {
            let rest = args.split_off(1);
            format!("{}.{method}({})", args[0], rest.join(", "))
        }
        None => format!("{}({})", row.name(), args.join(", ")),
    }
}
