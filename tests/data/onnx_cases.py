"""Writes tests/data/onnx_cases.txt: nodes of ONNX files, and what onnxruntime computes for them.

    pip install onnx onnxruntime numpy
    python3 tests/data/onnx_cases.py > tests/data/onnx_cases.txt

One node a line: `operator version | attribute=value ... | arguments | results`. An argument is `dtype[sizes]:elements`,
with `=` before it where it is a constant of the file, or `-` where it is left out. What onnxruntime does not have (versions
before 7 above all) is computed by the reference in the `onnx` package or, in `own`, here.
"""

import itertools
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

warnings.filterwarnings("ignore")
onnxruntime.set_default_logger_severity(4)
random = np.random.default_rng(7)
NAMES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "bool": "bool",
}  # fmt: skip
FLOATS = ["float32", "float64", "float16"]
INTS = ["int8", "int16", "int32", "int64", "uint8"]


class Constant:
    def __init__(self, value, dtype=None):
        self.value = np.asarray(value, dtype)


C = Constant


def some(*sizes, dtype="float32", low=-8, high=9):
    """Quarters, or ints."""
    if "float" in dtype:
        return (random.integers(low, high, sizes) / 4).astype(dtype)
    return random.integers(max(low, 0) if dtype[0] in "ub" else low, 2 if dtype == "bool" else high, sizes).astype(dtype)


def shown(x):
    if isinstance(x, Constant):
        return "=" + shown(x.value)
    if x is None:
        return "-"
    text = lambda v: str(int(v)) if x.dtype.kind in "iub" else np.format_float_positional(v, trim="-") if abs(v) < 1e6 else repr(float(v))
    return f"{NAMES[str(x.dtype)]}[{','.join(map(str, x.shape))}]:{','.join(text(v) for v in x.reshape(-1))}"


def setting(value):
    if isinstance(value, TensorProto):
        return shown(numpy_helper.to_array(value))
    return ",".join(str(v) for v in value) if isinstance(value, list) else str(value)


def computed(op, version, attributes, arguments, results):
    inputs, constants, names, given = [], [], [], {}
    for i, x in enumerate(arguments):
        names.append("" if x is None else f"x{i}")
        if isinstance(x, Constant):
            constants.append(numpy_helper.from_array(x.value, f"x{i}"))
        elif x is not None:
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            inputs.append(helper.make_tensor_value_info(f"x{i}", kind, x.shape))
            given[f"x{i}"] = x
    outputs = [f"y{i}" for i in range(results)]
    domain, _, name = op.rpartition(".")
    node = helper.make_node(name, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs], constants)
    imports = [helper.make_opsetid("", 17 if domain else version)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, given)
    except Exception:
        return ReferenceEvaluator(model).run(None, given)


def case(op, version, arguments, results=1, own=None, **attributes):
    out = computed(op, version, attributes, arguments, results) if own is None else [np.asarray(o) for o in own]
    settings = " ".join(f"{name}={setting(value)}" for name, value in attributes.items())
    print(f"{op} {version} | {settings} | {' ; '.join(map(shown, arguments))} | {' ; '.join(map(shown, map(np.asarray, out)))}")


def each(op, versions, arguments, results=1, **choices):
    """With every combination of choices; `None` leaves an attribute out."""
    for version in versions:
        for values in itertools.product(*choices.values()):
            attributes = {k: v for k, v in zip(choices, values) if v is not None}
            case(op, version, arguments, results, **attributes)


def elementwise():
    near = np.array([-0.75, -0.25, 0.0, 0.5, 0.75])
    odd = np.array([-np.inf, -2.5, -1.5, -0.5, 0, 0.5, 2.5, np.inf, np.nan])
    for op in ["Abs", "Neg", "Floor", "Ceil", "Round", "Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Exp"]:
        for dtype in FLOATS:
            case(op, 22, [odd.astype(dtype)])
    for op in ["Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Erf", "Mish", "HardSwish", "Gelu"]:
        for dtype in FLOATS:
            case(op, 22, [near.astype(dtype)])
    for op in ["Log", "Sqrt", "Reciprocal"]:
        for dtype in FLOATS:
            case(op, 13, [np.array([0.25, 1, 2.5, 9], dtype)])
    for op, dtype in itertools.product(["Abs", "Neg", "Sign", "Relu"], ["int8", "int16", "int32", "int64"]):
        case(op, 14, [some(5, dtype=dtype)])
    case("Sign", 13, [np.array([-1.5, 0, 2], "float32")])
    case("IsNaN", 20, [odd.astype("float32")])
    each("IsInf", [10, 20], [odd.astype("float32")], detect_positive=[0, 1], detect_negative=[0, 1])
    case("Not", 1, [np.array([True, False])])
    for dtype in INTS:
        case("BitwiseNot", 18, [some(4, dtype=dtype)])
        for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
            case(op, 18, [some(4, dtype=dtype, low=0), some(4, dtype=dtype, low=0)])
    case("Identity", 13, [some(3)])
    case("Dropout", 13, [some(3)], 2, seed=3)
    case("Dropout", 10, [some(3)], ratio=0.25)
    x = some(3)
    case("Dropout", 6, [x], own=[x], is_test=1, ratio=0.25)
    each("Gelu", [20], [near.astype("float32")], approximate=["none", "tanh"])
    for op, version in [("Elu", 6), ("Celu", 12), ("LeakyRelu", 16), ("ThresholdedRelu", 10)]:
        each(op, [version], [odd.astype("float32")], alpha=[None, 0.5, -1.0])
    each("Selu", [6], [odd.astype("float32")], alpha=[None, 0.5], gamma=[None, 1.5])
    each("HardSigmoid", [6], [odd.astype("float32")], alpha=[None, 0.5], beta=[None, 0.25])
    each("Clip", [6], [odd.astype("float32")], min=[None, -1.0], max=[None, 1.0])
    for dtype in ["float32", "float64", "int32", "int64", "int8", "uint8"]:
        case("Clip", 13, [some(6, dtype=dtype), C(1, dtype), C(3, dtype)])
        case("Clip", 13, [some(6, dtype=dtype), C(3, dtype), C(1, dtype)])
    case("Clip", 13, [odd.astype("float32")])
    case("Clip", 13, [odd.astype("float32"), None, C(1, "float32")])


def casts():
    for a, b in itertools.product(NAMES, NAMES):
        x = np.array([0, 1, 2.75, 100], "float64").astype(a)
        case("Cast", 13, [x], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(b))))
    case("Cast", 13, [np.array([-1, 300, -300], "int64")], to=TensorProto.INT8)
    case("Cast", 1, [np.array([1.5], "float32")], own=[np.array([1.5], "float64")], to="DOUBLE")
    case("CastLike", 15, [some(3), np.zeros(1, "int32")])


def pairs():
    for op in ["Add", "Sub", "Mul", "Div"]:
        for dtype in FLOATS + ["int32", "int64"]:
            y = np.array([3, -2, 5, 7], dtype)
            for other in [y, C(y), C(np.array(3, dtype)), C(np.array([-3], dtype))]:
                case(op, 14, [some(2, 4, dtype=dtype), other])
        case(op, 14, [C(np.array([[3]], "int32")), np.array([2, -4], "int32")])
        for dtype in ["int8", "int16", "uint8"]:
            case(op, 14, [some(4, dtype=dtype, low=0), np.array([3, 5, 7, 2], dtype)])
    for dtype in ["int8", "int16", "int32", "int64"]:
        least = np.iinfo(dtype).min
        # The least int by -1 has no quotient of its dtype, and wraps around here.
        x, y = np.array([least, least, least + 1, 7, -7], dtype), np.array([-1, 3, -1, -2, 2], dtype)
        case("Div", 14, [x, y], own=[np.array([least, -((-int(least)) // 3), -int(least + 1), -3, -3], dtype)])
        case("Div", 14, [np.array([least, 7, -7], dtype), C(2, dtype)])
    for dtype, fmod in itertools.product(INTS, [None, 0, 1]):
        x = np.array([7, -7 if dtype[0] == "i" else 8, 7, 9], dtype)
        y = np.array([3, 3, -3 if dtype[0] == "i" else 5, 9], dtype)
        each("Mod", [13], [x, y], fmod=[fmod])
        each("Mod", [13], [x, C(3, dtype)], fmod=[fmod])
    for dtype in FLOATS:
        x = np.array([7.5, -7.5, np.inf, 5, -5, 3, -1e4], dtype)
        case("Mod", 13, [x, np.array([2, 2, 3, np.inf, np.inf, 0, 3], dtype)], fmod=1)
    case("Mod", 28, [np.array([7.5, -7.5], "float32"), C(2, "float32")], own=[np.array([1.5, 0.5], "float32")])
    for base, exponent in itertools.product(["int32", "int64", "float32", "float64"], repeat=2):
        x = np.array([1, 2, 3, 5], base)
        case("Pow", 15, [x, np.array([2, 3, 0, 2], exponent)])
        case("Pow", 15, [x, C(2, exponent)])
        if "float" in exponent:
            case("Pow", 15, [x, C(0.5, exponent)])
    for op in ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]:
        for dtype in ["float32", "float64", "int32", "int64"]:
            case(op, 16, [some(3, 4, dtype=dtype, low=0, high=3), some(4, dtype=dtype, low=0, high=3)])
    for op in ["And", "Or", "Xor"]:
        case(op, 7, [some(2, 4, dtype="bool"), some(4, dtype="bool")])
    for op, dtype in itertools.product(["Max", "Min", "Sum", "Mean"], ["float32", "float64"]):
        for count in [1, 2, 3]:
            case(op, 13, [some(3, dtype=dtype) for _ in range(count)])
        case(op, 13, [some(3, dtype=dtype), C(0.5, dtype), some(3, dtype=dtype)])
    for op, dtype in itertools.product(["Max", "Min"], ["int32", "int64", "int8", "uint8", "float16"]):
        case(op, 13, [some(4, dtype=dtype), some(4, dtype=dtype)])
    for dtype in NAMES:
        case("Where", 16, [some(4, dtype="bool"), some(4, dtype=dtype), C(1, dtype)])
    case("Where", 16, [some(4, dtype="bool"), C(1, "int32"), C(2, "int32")])
    for dtype in ["float32", "int32", "int64"]:
        case("PRelu", 16, [some(2, 3, 4, dtype=dtype), some(4, dtype=dtype)])
    x, slope = some(2, 3, 4), some(3)
    case("PRelu", 6, [x, slope], own=[np.where(x < 0, x * slope.reshape(3, 1), x)])
    case("PRelu", 6, [x, C(np.array([0.25], "float32"))], own=[np.where(x < 0, x * np.float32(0.25), x)])


def old_pairs():
    """Before version 7 the second of two stands anywhere in the dims of the first."""
    functions = dict(Add=np.add, Sub=np.subtract, Mul=np.multiply, Div=np.divide, Less=np.less, Greater=np.greater)
    functions |= dict(And=np.logical_and, Or=np.logical_or, Xor=np.logical_xor, Equal=np.equal, Pow=np.power)
    for op, function in functions.items():
        dtype = {"And": "bool", "Or": "bool", "Xor": "bool", "Equal": "int32"}.get(op, "float32")
        x, y, whole = some(2, 3, 2, dtype=dtype, low=1), some(2, dtype=dtype, low=1), some(2, 3, dtype=dtype, low=1)
        for version in [1, 6]:
            case(op, version, [x, y], own=[function(x, y.reshape(2, 1, 1))], axis=0, broadcast=1)
            case(op, version, [x, y], own=[function(x, y)], broadcast=1)
            case(op, version, [x, whole], own=[function(x, whole.reshape(2, 3, 1))], axis=0, broadcast=1)
            case(op, version, [x, x], own=[function(x, x)])


def reduced():
    for name in ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]:
        op, (old, new) = "Reduce" + name, (11, 13) if name == "Sum" else (17, 18)
        for dtype in ["float32", "float64", "int32", "int64"]:
            x = some(2, 3, 2, dtype=dtype, low=1, high=5)
            if name == "LogSumExp" and dtype == "int32":
                continue
            case(op, old, [x])
            case(op, old, [x], axes=[2, 0], keepdims=0)
            case(op, old, [x], axes=[-1])
            case(op, new, [x, C(np.array([1]))], keepdims=0)
            case(op, new, [x], noop_with_empty_axes=1)
    case("ReduceMean", 17, [np.array([[-7, 4, 0]], "int32")], axes=[1])
    for op, dtype in itertools.product(["ReduceMax", "ReduceMin"], ["int8", "uint8", "bool"]):
        case(op, 20, [some(2, 3, dtype=dtype), C(np.array([1]))])
    for op in ["ArgMax", "ArgMin"]:
        each(op, [13], [some(3, 4, low=0, high=2)], axis=[0, 1, -1], keepdims=[None, 0], select_last_index=[None, 1])
    for op in ["GlobalAveragePool", "GlobalMaxPool"]:
        case(op, 1, [some(1, 2, 3, 2)])
    inf = np.array([1, np.inf, 2, 3], "float32")
    for exclusive, reverse in itertools.product([None, 1], [None, 1]):
        for x in [inf, np.array([1e8, 1, 1, -1e8], "float32"), some(4, dtype="int32"), some(4, dtype="float64")]:
            each("CumSum", [14], [x, C(np.array(0))], exclusive=[exclusive], reverse=[reverse])
        each("CumSum", [14], [some(2, 3), C(np.array(-1))], exclusive=[exclusive], reverse=[reverse])


def shapes():
    x = some(2, 3, 2)
    each("Flatten", [13], [x], axis=[None, 0, 2, -1])
    case("Reshape", 13, [x, C(np.array([0, -1]))])
    case("Reshape", 14, [x, C(np.array([3, 4]))], allowzero=1)
    case("Reshape", 1, [x], own=[x.reshape(4, 3)], shape=[4, 3])
    each("Transpose", [13], [x], perm=[None, [2, 0, 1]])
    case("Unsqueeze", 11, [x], axes=[-1, 0])
    case("Unsqueeze", 13, [x, C(np.array([1]))])
    case("Squeeze", 11, [some(1, 3, 1)], axes=[-1, 0])
    case("Squeeze", 13, [some(1, 3, 1), C(np.array([0]))])
    for dtype in NAMES:
        case("Concat", 13, [some(2, 2, dtype=dtype)] * 2, axis=-1)
    case("Concat", 1, [x, x], own=[np.concatenate([x, x], 1)])
    case("Concat", 1, [x, x], own=[np.concatenate([x, x], 0)], axis=0)
    case("Split", 11, [some(3, 4)], 2, axis=1, split=[1, 3])
    case("Split", 13, [some(3, 4), C(np.array([2, 1]))], 2)
    case("Split", 18, [some(7)], 3, num_outputs=3)
    y = some(2, 4)
    case("Split", 1, [y], 2, own=np.split(y, 2, 1), axis=1)
    case("Slice", 9, [some(3, 4)], axes=[1, 0], starts=[1, -2], ends=[3, 100])
    case("Slice", 13, [some(3, 4)] + [C(np.array([v])) for v in (3, -100, 1, -2)])
    case("Expand", 13, [some(3, 1), C(np.array([2, 1, 2]))])
    case("Tile", 13, [some(2, 2), C(np.array([2, 1]))])
    for mode, version in [("constant", 13), ("reflect", 13), ("edge", 13), ("wrap", 19)]:
        for pads in [[1, 2], [7, 9], [-1, 2], [0, -2]]:
            case("Pad", version, [some(4), C(np.array(pads))], mode=mode)
        case("Pad", version, [some(2, 3), C(np.array([1, 2, 1, 0]))], mode=mode)
    case("Pad", 2, [some(3)], pads=[1, 2], value=2.5)
    case("Pad", 1, [y], own=[np.pad(y, [(0, 1), (2, 0)])], paddings=[0, 2, 1, 0])
    case("Pad", 13, [some(3, dtype="int64"), C(np.array([1, 1])), C(2**60 + 1, "int64")])
    for dtype in NAMES:
        case("Pad", 13, [some(3, dtype=dtype), C(np.array([1, 0])), C(1, dtype)])
    case("Pad", 18, [some(2, 3), C(np.array([1, 0])), None, C(np.array([-1]))])
    each("DepthToSpace", [13], [some(1, 8, 1, 2)], blocksize=[2], mode=[None, "CRD"])
    case("SpaceToDepth", 13, [some(1, 2, 2, 4)], blocksize=2)
    case("SpaceToDepth", 28, [some(1, 2, 2, 4)], blocksize=2, mode="CRD")
    each("Shape", [15], [x], start=[None, 1, -1], end=[None, 2, -9])
    case("Size", 13, [x])
    for dtype in ["int32", "int64", "float32", "float64", "int16"]:
        case("Range", 11, [C(1, dtype), C(10, dtype), C(3, dtype)])
    each("EyeLike", [9], [some(2, 3)], dtype=[None, 7, 11], k=[None, 1, -1])
    for dtype in NAMES:
        case("ConstantOfShape", 9, [C(np.array([2, 3]))], value=numpy_helper.from_array(np.array([1], dtype)))
    case("Constant", 13, [], value=numpy_helper.from_array(some(2, 2)))
    case("Constant", 13, [], value_float=1.5)
    case("Constant", 13, [], value_floats=[1.5, 2.0])
    case("Constant", 13, [], value_int=3)
    case("Constant", 13, [], value_ints=[3, 4])


def places():
    x = some(2, 3, 2)
    for axis in [None, 1, -1]:
        each("Gather", [13], [x, np.array([[0, 1], [-1, 0]])], axis=[axis])
    each("GatherElements", [13], [some(2, 2), np.array([[0, -1], [1, 0]])], axis=[None, 1])
    case("GatherND", 12, [x, C(np.array([[0, 1], [1, 2]]))])
    each("ScatterElements", [18], [some(2, 2), np.array([[0, 0]]), some(1, 2)], axis=[None, 1], reduction=["add"])
    for dtype in ["int32", "int64", "float32"]:
        ids = np.array([[1, 3], [0, 4]]).astype(dtype)
        each("OneHot", [11], [ids, C(np.array(4)), C(np.array([2, 5], "float32"))], axis=[None, 0, 1])
    for dtype in ["float32", "int64"]:
        each("TopK", [11], [some(2, 4, dtype=dtype), C(np.array([2]))], 2, axis=[None, 0], largest=[None, 0])
    y = np.array([[1, 3, 2]], "float32")
    case("TopK", 1, [y], 2, own=[np.array([[3, 2]], "float32"), np.array([[1, 2]])], k=2)
    each("Trilu", [14], [some(3, 3), C(np.array(1))], upper=[None, 0])


def norms():
    x = some(2, 3, 2)
    for op, version in itertools.product(["Softmax", "LogSoftmax"], [11, 13]):
        each(op, [version], [x], axis=[None, 0, 1])
    for axis, sizes in [(None, [2]), (1, [3, 2])]:
        each("LayerNormalization", [17], [x, some(*sizes), some(*sizes)], 3, axis=[axis], epsilon=[None, 0.5])
        each("RMSNormalization", [23], [x, some(*sizes)], axis=[axis], epsilon=[None, 0.5])
    half = some(2, 4, dtype="float16")
    case("LayerNormalization", 17, [half, some(4, dtype="float16"), some(4, dtype="float16")], 1, stash_type=1)
    case("LayerNormalization", 17, [x, C(np.array([0.5], "float32"))])
    wide, scale, bias = some(2, 4, dtype="float64"), some(4, dtype="float64"), some(4, dtype="float64")
    plain = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.float32(1e-5))
    case("LayerNormalization", 17, [wide, scale, bias], own=[plain * scale + bias], stash_type=11)
    case("GroupNormalization", 21, [wide, scale, bias], own=[plain * scale + bias], num_groups=1, stash_type=11)
    plain = wide / np.sqrt((wide**2).mean(1, keepdims=True) + np.float32(1e-5))
    case("RMSNormalization", 23, [wide, scale], own=[plain * scale], stash_type=11)
    four = [some(3), some(3), some(3), some(3, low=1)]
    each("BatchNormalization", [9, 15], [x, *four], epsilon=[None, 0.5])
    each("BatchNormalization", [15], [x, *four], 3, training_mode=[1], momentum=[None, 0.5], epsilon=[None, 0.5])
    case("BatchNormalization", 15, [x, *four], training_mode=1)
    shift = lambda v: v.reshape(3, 1)
    plain = (x - shift(four[2])) / np.sqrt(shift(four[3]) + 1e-5) * shift(four[0]) + shift(four[1])
    case("BatchNormalization", 6, [x, *four], own=[plain.astype("float32")], is_test=1)
    flat = some(2, 3)
    plain = (flat - four[2]) / np.sqrt(four[3] + 1e-5) * four[0] + four[1]
    case("BatchNormalization", 7, [flat, *four], own=[plain.astype("float32")], spatial=0)
    each("InstanceNormalization", [6], [some(1, 3, 4), some(3), some(3)], epsilon=[None, 0.5])
    groups = some(1, 4, 3)
    each("GroupNormalization", [21], [groups, some(4), some(4)], num_groups=[2], epsilon=[None, 0.5], stash_type=[None, 1])
    case("GroupNormalization", 18, [groups, some(2), some(2)], num_groups=2)
    each("LpNormalization", [22], [x], axis=[None, 1], p=[None, 1])


def products():
    for dtype in FLOATS[:2] + ["int32", "int64"]:
        case("MatMul", 13, [some(2, 3, dtype=dtype), some(3, 2, dtype=dtype)])
        case("Einsum", 12, [some(2, 3, dtype=dtype), some(3, 2, dtype=dtype)], equation="ij,jk->ki")
    a, b = some(2, 3), some(3, 2)
    case("Gemm", 13, [a, b, some(2)], alpha=0.5, beta=2.0)
    case("Gemm", 13, [a, a], transA=1)
    case("Gemm", 13, [b, b], transB=1)
    ints = [some(2, 3, dtype="int32"), some(3, 2, dtype="int32"), some(2, dtype="int32")]
    case("Gemm", 13, ints, own=[2 * ints[0] @ ints[1] + 3 * ints[2]], alpha=2.0, beta=3.0)
    for dtype in ["uint8", "int8"]:
        case("MatMulInteger", 10, [some(2, 3, dtype=dtype), some(3, 2, dtype=dtype), C(2, dtype), C(1, dtype)])


def windows():
    for size, include in itertools.product([5, 6, 7], [None, 1]):
        x = some(1, 1, size, size)
        pool = dict(kernel_shape=[[3, 3]], strides=[[2, 2]], pads=[[1, 1, 1, 1], [0, 0, 1, 1]], ceil_mode=[None, 1])
        each("AveragePool", [17], [x], count_include_pad=[include], **pool)
        if include is None:
            each("MaxPool", [17], [x], **pool)
    case("MaxPool", 17, [some(1, 1, 6)], kernel_shape=[1], strides=[2], ceil_mode=1)
    case("MaxPool", 17, [some(1, 1, 4, 4, dtype="int8")], kernel_shape=[2, 2])
    for mode in ["VALID", "SAME_UPPER", "SAME_LOWER"]:
        case("AveragePool", 17, [some(1, 1, 6)], kernel_shape=[3], strides=[2], auto_pad=mode)
        case("MaxPool", 17, [some(1, 1, 6)], kernel_shape=[3], strides=[2], auto_pad=mode)
        case("Conv", 11, [some(1, 2, 6), some(2, 2, 3)], strides=[2], auto_pad=mode)
    x = some(1, 2, 4, 4)
    case("Conv", 11, [x, some(2, 1, 2, 2), some(2)], group=2, pads=[1, 0, 0, 1], kernel_shape=[2, 2])
    case("Conv", 11, [x, some(1, 2, 2, 2)], dilations=[2, 2], strides=[1, 2])
    case("ConvTranspose", 11, [some(1, 2, 2, 2), some(2, 1, 2, 2)], group=2, strides=[2, 2], output_padding=[1, 0])
    case("ConvTranspose", 11, [some(1, 1, 3), some(1, 2, 2)], dilations=[2], pads=[1, 0], kernel_shape=[2], auto_pad="NOTSET")
    case("ConvTranspose", 11, [some(1, 1, 3), some(1, 2, 2)], auto_pad="VALID")
    image = some(1, 1, 4, 5)
    factors = C(np.array([1, 1, 1.5, 0.6], "float32"))
    for places in [None, "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]:
        each("Resize", [19], [image, None, factors], coordinate_transformation_mode=[places], mode=[None, "linear"])
    sizes = C(np.array([1, 1, 7, 3]))
    for mode in ["nearest", "linear"]:
        case("Resize", 13, [image, None, None, sizes], coordinate_transformation_mode="align_corners", mode=mode)
    each("Resize", [13], [image, None, factors], nearest_mode=["floor", "ceil", "round_prefer_ceil"])
    case("Resize", 18, [image, None, None, C(np.array([7, 3]))], axes=[2, -1])
    case("Resize", 13, [some(1, 1, 2, 2, dtype="uint8"), None, C(np.array([1, 1, 2, 2], "float32"))])
    case("Resize", 10, [image, C(np.array([1, 1, 0.5, 0.6], "float32"))])
    case("Upsample", 9, [image, C(np.array([1, 1, 2, 1.5], "float32"))], mode="linear")
    case("Upsample", 7, [image], scales=[1.0, 1.0, 2.0, 3.0])
    case("Upsample", 1, [image], own=[image.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0)


def quantized():
    for dtype, kind in [("uint8", 2), ("int8", 3), ("int16", 5)]:
        version = 21 if dtype == "int16" else 13
        x, q = some(2, 4, low=-99, high=99), some(2, 4, dtype=dtype)
        case("QuantizeLinear", version, [x, C(0.5, "float32"), C(3, dtype)])
        case("DequantizeLinear", version, [q, C(0.5, "float32"), C(3, dtype)])
        for axis, count in [(None, 4), (0, 2)]:
            scale, zero = some(count, low=1), some(count, dtype=dtype, low=0)
            each("QuantizeLinear", [version], [x, scale, zero], axis=[axis])
            each("DequantizeLinear", [version], [q, scale, zero], axis=[axis])
        scale, zero = some(2, 2, low=1), some(2, 2, dtype=dtype, low=0)
        case("QuantizeLinear", 21, [x, scale, zero], block_size=2, axis=1)
        case("DequantizeLinear", 21, [q, scale, zero], block_size=2, axis=1)
        case("DequantizeLinear", 21, [q[:, :3], scale, zero], block_size=2, axis=-1)
        case("QuantizeLinear", 21, [x, C(0.5, "float32")], output_dtype=kind)
    case("QuantizeLinear", 23, [some(4), C(0.5, "float32"), C(3, "uint8")], precision=1)
    case("DequantizeLinear", 13, [some(3, dtype="int32"), C(0.5, "float32")])
    q = some(3, dtype="int8")
    wide = [q, C(0.5, "float16"), C(2, "int8")]
    case("DequantizeLinear", 23, wide, own=[(q.astype("int32") - 2).astype("float32") * 0.5], output_dtype=1)
    for x in [some(2, 3), np.zeros(3, "float32"), some(3, low=1)]:
        case("DynamicQuantizeLinear", 11, [x], 3)


def recurrent(op, gates, direction, version=14, lengths=None, peepholes=False, batch_first=False, **attributes):
    t, b, i, h, d = 3, 2, 2, 2, 2 if direction == "bidirectional" else 1
    state = (b, d, h) if batch_first else (d, b, h)
    # Small, so that states without bounds stay small.
    small = lambda *sizes: some(*sizes, low=-3, high=4)
    arguments = [small(b, t, i) if batch_first else small(t, b, i), C(small(d, gates * h, i)), C(small(d, gates * h, h))]
    arguments += [C(small(d, 2 * gates * h)), C(np.array(lengths, "int32")) if lengths else None, small(*state)]
    if op == "LSTM":
        arguments += [small(*state), C(small(d, 3 * h)) if peepholes else None]
    while arguments[-1] is None:
        arguments.pop()
    if batch_first:
        attributes["layout"] = 1
    if direction:
        attributes["direction"] = direction
    case(op, version, arguments, 3 if op == "LSTM" else 2, hidden_size=h, **attributes)


def networks():
    alphas = dict(Affine=[0.5], LeakyRelu=[0.125], ThresholdedRelu=[0.25], ScaledTanh=[0.5], HardSigmoid=[0.25], Elu=[0.5])
    betas = dict(Affine=[0.25], ScaledTanh=[0.75], HardSigmoid=[0.5])
    functions = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", *alphas]
    for op, gates, usual in [("RNN", 1, ["Tanh"]), ("GRU", 3, ["Sigmoid", "Tanh"]), ("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"])]:
        for direction in [None, "forward", "reverse", "bidirectional"]:
            d = 2 if direction == "bidirectional" else 1
            recurrent(op, gates, direction, 7)
            recurrent(op, gates, direction, lengths=[1, 3])
            recurrent(op, gates, direction, batch_first=True)
            recurrent(op, gates, direction, clip=0.25)
            if op == "GRU":
                recurrent(op, gates, direction, linear_before_reset=1)
            if op == "LSTM":
                recurrent(op, gates, direction, input_forget=1)
                recurrent(op, gates, direction, peepholes=True)
        for function, direction in itertools.product(functions, ["forward", "bidirectional"]):
            d = 2 if direction == "bidirectional" else 1
            more = {}
            if function in alphas:
                more["activation_alpha"] = alphas[function] * d
            if function in betas:
                more["activation_beta"] = betas[function] * d
            recurrent(op, gates, direction, activations=([function] + usual[1:]) * d, **more)
            if op != "RNN" and direction == "forward":
                recurrent(op, gates, direction, activations=usual[:-1] + [function], **more)


def rows():
    """Elements at places, written."""
    x = some(3, 4)
    for reduction in [None, "add", "mul", "max", "min"]:
        at, to = np.array([[0, 2, 1, 0]]), some(1, 4)
        each("ScatterElements", [18], [x, at, to], axis=[None], reduction=[reduction])
        each("ScatterElements", [18], [x, np.array([[3, -2], [0, 2]]), some(2, 2)], axis=[1], reduction=[reduction])
        each("ScatterND", [18], [x, C(np.array([[2], [0]])), some(2, 4)], reduction=[reduction])
        each("ScatterND", [18], [some(2, 3, 2), C(np.array([[[1, 2], [0, -1]]])), some(1, 2, 2)], reduction=[reduction])
        if reduction not in (None,):
            case("ScatterND", 18, [x, C(np.array([[1, 2], [1, 2], [0, 0]])), some(3)], reduction=reduction)
    case("ScatterND", 16, [some(2, 3, dtype="int64"), C(np.array([[1, 2]])), some(1, dtype="int64")])
    case("ScatterND", 16, [some(2, 3, dtype="bool"), C(np.array([[1, 2]])), np.array([True])])
    each("Scatter", [9], [x, np.array([[0, 2]]), some(1, 2)], axis=[None, 1])
    each("GatherND", [13], [some(2, 3, 2), C(np.array([[1], [0]]))], batch_dims=[1])
    each("GatherND", [13], [some(2, 3, 4, 2), C(np.array([[[0, 1], [1, 1], [2, 3]]] * 2))], batch_dims=[1])
    each("GatherND", [13], [some(2, 3, 4, 2), C(np.array([[[1], [2], [0]]] * 2))], batch_dims=[2])
    each("ReverseSequence", [10], [some(3, 2, 2), np.array([2, 3])], time_axis=[None])
    case("ReverseSequence", 10, [some(2, 3), np.array([2, 3])], time_axis=1, batch_axis=0)


def more_elementwise():
    near = np.array([-2.5, -0.75, -0.25, 0.0, 0.5, 0.75, 3.0], "float32")
    for op, x in [("Asinh", near), ("Acosh", np.abs(near) + 1), ("Atanh", near / 4)]:
        case(op, 22, [x])
    each("Swish", [24], [near], alpha=[None, 0.5])
    each("Shrink", [9], [near], bias=[None, 0.25], lambd=[None, 1.0])
    case("SwiGLU", 28, [near, near + 1], own=[near / (1 + np.exp(-0.5 * near)) * (near + 1)], alpha=0.5)
    for direction in ["LEFT", "RIGHT"]:
        case("BitShift", 11, [np.array([16, 4, 1], "uint8"), np.array([1, 2, 3], "uint8")], direction=direction)
    for exclusive, reverse in itertools.product([None, 1], [None, 1]):
        each("CumProd", [26], [some(2, 3), C(np.array(1))], exclusive=[exclusive], reverse=[reverse])
    each("Hardmax", [13], [some(3, 4)], axis=[None, 0])
    each("GlobalLpPool", [2], [some(1, 2, 3, 2)], p=[None, 1, 3])
    case("MeanVarianceNormalization", 13, [some(2, 3, 2, 2)])
    case("MeanVarianceNormalization", 13, [some(2, 3, 2)], axes=[0, 2])
    each("LRN", [13], [some(2, 5, 2, 2)], size=[3, 5], alpha=[None, 0.5], beta=[None, 0.5], bias=[None, 2.0])
    case("Det", 11, [some(2, 3, 3)])


def losses():
    x, at, w = some(3, 4), np.array([0, 3, 1]), np.array([0.5, 1, 2, 1], "float32")
    pictures, places = some(2, 3, 2, 2), np.array([[[0, 2], [1, 1]]] * 2)
    for op in ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]:
        each(op, [13], [x, at], reduction=[None, "none", "sum"])
        each(op, [13], [x, at, w], reduction=[None, "none"], ignore_index=[None, 3])
        each(op, [13], [pictures, places], reduction=["mean", "none"], ignore_index=[1, -1])
    case("SoftmaxCrossEntropyLoss", 13, [pictures, places], 2)


def pools():
    image = some(1, 2, 5, 6)
    for op, version in [("MaxPool", 12), ("AveragePool", 19), ("LpPool", 18)]:
        each(op, [version], [image], kernel_shape=[[2, 3]], dilations=[[2, 1], [2, 2]], pads=[None, [1, 0, 0, 1]], strides=[None, [2, 1]])
        case(op, version, [some(1, 1, 6)], kernel_shape=[2], dilations=[3])
    each("LpPool", [18], [image], kernel_shape=[[2, 2]], p=[None, 1, 3], strides=[None, [2, 2]])
    case("LpPool", 18, [image], kernel_shape=[3, 3], auto_pad="SAME_UPPER")
    case("LpPool", 18, [image], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, pads=[0, 0, 1, 0])
    case("AveragePool", 19, [image], kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    each("MaxPool", [12], [image], 2, kernel_shape=[[2, 2]], pads=[None, [1, 0, 0, 1]], strides=[None, [2, 2]])
    each("MaxPool", [12], [image], 2, kernel_shape=[[2, 3]], storage_order=[1], dilations=[None, [2, 1]])
    y, at = computed("MaxPool", 12, dict(kernel_shape=[2, 2], strides=[2, 2]), [some(1, 1, 4, 4)], 2)
    case("MaxUnpool", 11, [y, at], kernel_shape=[2, 2], strides=[2, 2])
    case("MaxUnpool", 11, [y, np.array([[[[0, 2], [4, 8]]]])], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1])


def smooth():
    image = some(1, 1, 4, 5)
    up, down = C(np.array([1, 1, 1.75, 2], "float32")), C(np.array([1, 1, 0.5, 0.6], "float32"))
    for scales in [up, down]:
        each("Resize", [19], [image, None, scales], mode=["cubic"], cubic_coeff_a=[None, -0.5], exclude_outside=[None, 1])
        each("Resize", [19], [image, None, scales], mode=["cubic"], coordinate_transformation_mode=["align_corners", "asymmetric"])
        each("Resize", [19], [image, None, scales], mode=["linear", "cubic"], antialias=[1], exclude_outside=[None, 1])
    each("Resize", [19], [image, None, None, C(np.array([7, 8]))], axes=[[2, 3]], keep_aspect_ratio_policy=["not_larger", "not_smaller"], mode=["linear"])


def bytes():
    for dtype in ["uint8", "int8"]:
        a, b = some(2, 3, dtype=dtype, low=-9, high=99), some(3, 2, dtype=dtype, low=-9, high=99)
        scale, zero = lambda v: C(v, "float32"), lambda v: C(v, dtype)
        case("QLinearMatMul", 10, [a, scale(0.5), zero(3), b, scale(0.25), zero(2), scale(8), zero(5)])
        case("QLinearMatMul", 10, [a, scale(0.5), zero(3), b, C(np.array([0.25, 0.5], "float32")), C(np.array([2, 3], dtype)), scale(8), zero(5)])
    x, w = some(1, 2, 5, 4, dtype="uint8", high=99), some(4, 2, 2, 2, dtype="int8")
    one, three, s = C(1, "uint8"), C(3, "int8"), lambda v: C(v, "float32")
    common = [dict(), dict(strides=[2, 1], pads=[1, 0, 1, 1]), dict(dilations=[2, 1]), dict(auto_pad="SAME_UPPER"), dict(kernel_shape=[2, 2])]
    for more in common:
        case("ConvInteger", 10, [x, C(w), one, three], **more)
        case("QLinearConv", 10, [x, s(0.5), one, C(w), s(0.25), C(0, "int8"), s(4), C(7, "uint8")], **more)
    case("ConvInteger", 10, [x, C(w[:, :1])], group=2)
    wide = C(np.array([0.25, 0.5, 0.25, 1], "float32"))
    case("QLinearConv", 10, [x, s(0.5), one, C(w[:, :1]), wide, C(np.zeros(4, "int8")), s(4), C(7, "uint8"), C(some(4, dtype="int32"))], group=2)


def signals():
    x = some(1, 6, 1)
    z = some(1, 6, 2)
    each("DFT", [17], [x], axis=[None, 1], onesided=[None, 1])
    each("DFT", [17], [z], inverse=[None, 1])
    case("DFT", 20, [z, C(4)])
    case("DFT", 20, [some(2, 4, 3, 2), None, C(1)])
    half = np.fft.rfft(x[..., 0], axis=1)
    half = np.stack([half.real, half.imag], -1).astype("float32")
    case("DFT", 20, [half], own=[x], inverse=1, onesided=1)
    each("STFT", [17], [some(2, 10, 1), C(3), C(some(4, low=1))], onesided=[None, 0])
    case("STFT", 17, [some(1, 8, 1), C(2), None, C(4)])
    for op in ["HannWindow", "HammingWindow", "BlackmanWindow"]:
        each(op, [17], [C(6)], periodic=[None, 0], output_datatype=[None, 11])


def grids():
    image, grid = some(2, 2, 3, 4), (random.integers(-12, 13, (2, 2, 3, 2)) / 8).astype("float32")
    names = dict(align_corners=[None, 1], padding_mode=[None, "border", "reflection"])
    each("GridSample", [16], [image, grid], mode=[None, "nearest", "bicubic"], **names)
    each("GridSample", [20], [image, grid], mode=[None, "nearest", "cubic"], padding_mode=["zeros"])
    each("GridSample", [20], [some(1, 1, 2, 3, 2), (random.integers(-9, 10, (1, 2, 2, 2, 3)) / 10).astype("float32")], align_corners=[None, 1])
    each("AffineGrid", [20], [some(2, 2, 3), C(np.array([2, 1, 3, 4]))], align_corners=[None, 1])
    each("AffineGrid", [20], [some(1, 3, 4), C(np.array([1, 1, 2, 3, 2]))], align_corners=[None, 1])
    case("CenterCropPad", 18, [some(5, 4), C(np.array([2, 7]))])
    case("CenterCropPad", 18, [some(5, 4), C(np.array([3]))], axes=[-1])


def attentions():
    q, k, v = some(2, 2, 3, 4), some(2, 2, 5, 4), some(2, 2, 5, 2)
    flat, flat_k = some(2, 3, 8), some(2, 5, 8)
    case("Attention", 23, [q, k, v])
    each("Attention", [23], [q, k, v], is_causal=[None, 1], scale=[0.25], softcap=[2.0])
    each("Attention", [23], [flat, flat_k, flat_k], q_num_heads=[2], kv_num_heads=[2])
    case("Attention", 23, [some(2, 3, 16), flat_k, flat_k], q_num_heads=4, kv_num_heads=2)
    for mask in [some(3, 5), some(3, 5, dtype="bool"), some(2, 1, 3, 5)]:
        case("Attention", 23, [q, k, v, mask])
    case("Attention", 23, [q, some(2, 2, 3, 4), some(2, 2, 3, 4), None, some(2, 2, 2, 4), some(2, 2, 2, 4)], 3, is_causal=1)
    for mode in [0, 1, 2, 3]:
        keys = some(2, 2, 3, 4)
        case("Attention", 24, [q, keys, keys, some(3, 3), some(2, 2, 2, 4), some(2, 2, 2, 4)][:4], 4, qk_matmul_output_mode=mode, softcap=3.0)
    each("Attention", [25], [q, k, v], is_causal=[None, 1], left_window_size=[1], right_window_size=[None, 1])
    case("Attention", 24, [q, k, v, None, None, None, np.array([3, 5])], is_causal=1)
    cos, sin = some(4, 2), some(4, 2)
    at = np.array([[0, 1, 2], [1, 2, 3]])
    each("RotaryEmbedding", [23], [q, cos, sin, at], interleaved=[None, 1])
    each("RotaryEmbedding", [23], [flat, cos, sin, at], num_heads=[2])
    each("RotaryEmbedding", [23], [some(1, 2, 3, 6), some(1, 3, 2), some(1, 3, 2)], rotary_embedding_dim=[4], interleaved=[None, 1])


def contrib():
    x, m = some(2, 3, 4), "com.microsoft."
    case(m + "Gelu", 1, [x])
    case(m + "FastGelu", 1, [x])
    case(m + "FastGelu", 1, [x, some(4)])
    case(m + "BiasGelu", 1, [x, some(4)])
    each(m + "QuickGelu", [1], [x], alpha=[None, 1.0])
    image = some(1, 3, 2, 2)
    flat = some(2, 3, 4)
    bias = some(4)
    case(m + "BiasAdd", 1, [flat, C(bias), x], own=[flat + bias + x])
    each(m + "FusedMatMul", [1], [some(2, 3), some(3, 2)], alpha=[None, 0.5])
    case(m + "FusedMatMul", 1, [some(3, 2), some(2, 3)], transA=1, transB=1)
    w = some(2, 3, 2, 2)
    case(m + "FusedConv", 1, [image, w, some(2)], activation="Relu", strides=[2, 1], dilations=[1, 1], kernel_shape=[2, 2])
    case(m + "FusedConv", 1, [image, w, some(2)], activation="LeakyRelu", activation_params=[0.25], pads=[1, 1, 0, 0])
    case(m + "FusedConv", 1, [image, w], activation="Clip", activation_params=[-1.0, 1.0], auto_pad="SAME_UPPER")
    case(m + "FusedConv", 1, [image, some(3, 1, 1, 1)], activation="Tanh", group=3)
    case(m + "FusedConv", 1, [some(1, 3, 5, 5), w], activation="Sigmoid", dilations=[2, 2])
    each(m + "SkipLayerNormalization", [1], [x, some(2, 3, 4), some(4), some(4), some(4)], epsilon=[None, 0.5])
    case(m + "SkipLayerNormalization", 1, [x, some(2, 3, 4), some(4)])
    each(m + "SkipSimplifiedLayerNormalization", [1], [x, some(2, 3, 4), some(4), some(4)], epsilon=[0.5, 0.01])
    each("SimplifiedLayerNormalization", [17], [x, some(4)], epsilon=[None, 0.5])
    case("SimplifiedLayerNormalization", 17, [x, some(3, 4)], axis=1)
    ids = np.array([[1, 2, 0], [2, 2, 1]], "int32")
    each(m + "EmbedLayerNormalization", [1], [ids, np.array([[0, 0, 1]] * 2, "int32"), C(some(3, 4)), C(some(5, 4)), C(some(2, 4)), C(some(4)), C(some(4)), np.array([[1, 1, 0], [1, 0, 0]], "int32")], 2, epsilon=[0.5])
    case(m + "Attention", 1, [x, C(some(4, 12)), C(some(12)), np.array([[1, 1, 0], [1, 1, 1]], "int32")], num_heads=2)
    each(m + "Attention", [1], [x, C(some(4, 12)), C(some(12))], num_heads=[2], unidirectional=[None, 1], scale=[0.25])
    case(m + "Attention", 1, [x, C(some(4, 12)), C(some(12)), np.array([[1, 1, 0], [1, 1, 1]], "int32")], num_heads=1, mask_filter_value=-2.0)
    each(m + "MultiHeadAttention", [1], [x, some(2, 5, 4), some(2, 5, 4), C(some(12))], num_heads=[2], scale=[None, 0.25])
    case(m + "MultiHeadAttention", 1, [x, some(2, 3, 4), some(2, 3, 4), None, np.array([[1, 1, 0], [1, 1, 1]], "int32")], num_heads=1, mask_filter_value=-2.0)
    case(m + "MultiHeadAttention", 1, [x, x, x, None, None, some(1, 2, 3, 5), some(2, 2, 2, 2), some(2, 2, 2, 2)], 3, num_heads=2)
    case(m + "MultiHeadAttention", 1, [x, x, x], num_heads=2, unidirectional=1)
    cos, sin = some(6, 2), some(6, 2)
    case(m + "RotaryEmbedding", 1, [some(1, 2, 3, 4), np.array([[0, 1, 2]]), cos, sin])
    each(m + "RotaryEmbedding", [1], [some(1, 3, 8), np.array([2]), cos, sin], interleaved=[None, 1])
    case(m + "RotaryEmbedding", 1, [some(1, 3, 12), np.array([[2, 0, 1]]), cos, sin], num_heads=2, rotary_embedding_dim=4)
    q, scales = some(3, 2, 8, dtype="uint8", high=256), some(6, low=1)
    for zeros in [None, C(some(3, dtype="uint8", high=256))]:
        case(m + "MatMulNBits", 1, [some(2, 32), C(q), C(scales), zeros], K=32, N=3, bits=4, block_size=16)
    case(m + "MatMulNBits", 1, [some(2, 20), C(q), C(scales)], K=20, N=3, bits=4, block_size=16)
    case(m + "MatMulNBits", 1, [some(2, 32), C(some(3, 2, 16, dtype="uint8", high=256)), C(scales)], K=32, N=3, bits=8, block_size=16)
    a, b = some(2, 3, dtype="uint8", high=99), some(2, 3, dtype="uint8", high=99)
    s, zero = lambda v: C(v, "float32"), lambda v: C(v, "uint8")
    for op in ["QLinearAdd", "QLinearMul"]:
        case(m + op, 1, [a, s(0.5), zero(9), b, s(0.25), zero(3), s(2), zero(7)])
    tail = [s(0.0625), zero(9), s(0.03125), zero(3)]
    case(m + "QLinearSigmoid", 1, [a] + tail)
    each(m + "QLinearLeakyRelu", [1], [a] + tail, alpha=[None, 0.25])
    case(m + "QLinearGlobalAveragePool", 1, [some(1, 2, 3, 4, dtype="uint8", high=99)] + tail)
    each(m + "QLinearSoftmax", [1], [a] + tail, axis=[-1, 1], opset=[13])
    case(m + "QLinearConcat", 1, [s(0.5), zero(9), a, s(0.25), zero(3), b, s(1), zero(1)], axis=1)
    case(m + "MatMulIntegerToFloat", 1, [a, C(some(3, 2, dtype="int8")), s(0.5), s(0.25), zero(3), C(2, "int8"), C(some(2))])
    case(m + "DynamicQuantizeMatMul", 1, [some(2, 3), C(some(3, 2, dtype="int8")), s(0.25), C(2, "int8"), C(some(2))])
    case(m + "DequantizeLinear", 1, [a, C(np.array([0.5, 0.25], "float32")), C(np.array([3, 4], "uint8"))], axis=0)
    case(m + "QuantizeLinear", 1, [some(2, 3, low=1, high=99), C(np.array([0.5, 0.25], "float32")), C(np.array([3, 4], "uint8"))], axis=0)


def later():
    x, w = some(1, 2, 3, 4), some(2, 3, 3, 2)
    for shape in [[7, 8], [6, 7]]:
        case("ConvTranspose", 11, [x, w], strides=[2, 2], output_shape=shape)
    for pad in ["SAME_UPPER", "SAME_LOWER"]:
        case("ConvTranspose", 11, [x, w], strides=[2, 2], auto_pad=pad)
    for more in [dict(), dict(strides=[2, 1, 2], pads=[1, 0, 0, 0, 1, 1]), dict(dilations=[1, 2, 1], strides=[1, 2, 1], output_padding=[0, 1, 0])]:
        case("ConvTranspose", 11, [some(1, 2, 2, 3, 2), some(2, 2, 2, 2, 2), some(2)], **more)
    case("ConvTranspose", 11, [some(1, 4, 2, 2, 2), some(4, 3, 2, 1, 2)], group=2, strides=[2, 2, 2])
    case("DFT", 17, [some(1, 2, 4, 1)], axis=2)


def chosen():
    x = np.array([[1, 0, 3], [0, 0, -2]], "float32")
    for dtype in ["float32", "int64", "bool", "uint8"]:
        case("NonZero", 13, [x.astype(dtype)])
    case("NonZero", 9, [np.zeros((2, 2), "float32")])
    case("NonZero", 13, [some(2, 2, 2, dtype="int32", low=0, high=2)])
    y, condition = some(3, 4), np.array([False, True, True])
    for version in [9, 11]:
        case("Compress", version, [y, condition], axis=0)
    case("Compress", 11, [y, condition])
    case("Compress", 11, [y, C(condition)], axis=-1)
    values = np.array([2, 1, 1, 3, 4, 3], "float32")
    rows = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4], [0, 9, 9]], "float32")
    for order in [None, 0]:
        each("Unique", [11], [values], 4, sorted=[order])
        each("Unique", [11], [values.astype("int64").reshape(2, 3)], sorted=[order])
        each("Unique", [11], [rows], 4, axis=[0, 1, -1], sorted=[order])
    case("Unique", 11, [some(2, 3, 2, dtype="int32", high=-6)], 4, axis=1)
    corners = random.integers(0, 40, (2, 9, 2)).astype("float32") / 4
    sizes = random.integers(4, 20, (2, 9, 2)).astype("float32") / 4
    boxes, scores = np.concatenate([corners, corners + sizes], 2), random.permutation(54).reshape(2, 3, 9).astype("float32") / 64
    number, one = lambda v: C([v], "int64"), lambda v: C([v], "float32")
    for most, overlap, least in [(2, 0.5, 0.125), (9, 0.25, 0.0), (1, 0.0, 0.5), (0, 0.5, 0.0)]:
        case("NonMaxSuppression", 11, [boxes, scores, number(most), one(overlap), one(least)])
    case("NonMaxSuppression", 10, [boxes[:, :, [2, 3, 0, 1]], scores, np.array([3]), np.array([0.5], "float32"), np.array([0.25], "float32")])
    case("NonMaxSuppression", 11, [boxes, scores, number(4)])
    case("NonMaxSuppression", 11, [boxes, scores])
    case("NonMaxSuppression", 11, [np.concatenate([corners + 3, sizes], 2), scores, number(5), one(0.3), one(0.1)], center_point_box=1)
    case("NonMaxSuppression", 11, [boxes[:, :0], scores[:, :, :0], number(5), one(0.3)])
    images, rois, which = some(2, 3, 6, 5), np.array([[0, 0, 4, 4], [1, 1.5, 4.5, 2], [-1, -2, 7, 9]], "float32"), np.array([0, 1, 1])
    for more in [dict(), dict(sampling_ratio=2), dict(output_height=2, output_width=3), dict(output_height=2, output_width=2, spatial_scale=0.5)]:
        for mode in [None, "max"]:
            if mode:
                more = dict(more, mode=mode)
            case("RoiAlign", 10, [images, rois, which], **more)
            case("RoiAlign", 16, [images, rois, which], **more)
    each("RoiAlign", [16], [images, rois, which], coordinate_transformation_mode=["output_half_pixel"], output_height=[3], sampling_ratio=[0, 3])
    image, kernel = some(1, 2, 5, 4), some(2, 2, 3, 2)
    offset = lambda groups, high, wide: some(1, groups * 12, high, wide)
    case("DeformConv", 19, [image, kernel, offset(1, 3, 3)])
    case("DeformConv", 19, [image, kernel, offset(1, 3, 3), some(2), some(1, 6, 3, 3)], kernel_shape=[3, 2])
    case("DeformConv", 19, [image, kernel, offset(2, 3, 2)], pads=[1, 1, 1, 0], strides=[2, 2], offset_group=2)
    case("DeformConv", 19, [image, some(2, 1, 3, 2), offset(1, 1, 2)], dilations=[2, 2], group=2)
    for more in [dict(), dict(strides=[2, 1]), dict(pads=[1, 0, 0, 1])]:
        high, wide = [(3, 3), (2, 3), (4, 4)][len(more) if "pads" not in more else 2]
        case("Col2Im", 18, [some(1, 8, high * wide), C([4, 4]), C([2, 2])], **more)
    case("Col2Im", 18, [some(1, 8, 4), C([4, 4]), C([2, 2])], dilations=[2, 2])
    case("Col2Im", 18, [some(2, 12, 8), C([3, 3, 3]), C([2, 2, 2])][:1] + [C([3, 3, 3]), C([1, 2, 2])], strides=[2, 1, 1])
    mel = lambda bins, length, rate, low, high: [C(bins, "int64"), C(length, "int64"), C(rate, "int64"), C(low, "float32"), C(high, "float32")]
    case("MelWeightMatrix", 17, mel(8, 16, 8192, 0, 4096))
    case("MelWeightMatrix", 17, mel(20, 512, 16000, 20, 7600))
    case("MelWeightMatrix", 17, mel(4, 64, 8000, 125, 3800), output_datatype=11)
    past, update = some(2, 3, 5, 2), some(2, 3, 2, 2)
    case("TensorScatter", 24, [past, update, np.array([1, 3])])
    case("TensorScatter", 24, [past, update])
    each("TensorScatter", [24], [past, update, np.array([4, 0])], mode=["circular"])
    case("TensorScatter", 24, [some(2, 5, 2), some(2, 3, 2), np.array([2, 1])], axis=1)


def states():
    q, k, v = some(2, 3, 8), some(2, 3, 4), some(2, 3, 6)
    heads = dict(q_num_heads=4, kv_num_heads=2)
    decay, beta = -some(2, 3, 4, low=0), some(2, 3, 2, low=0, high=5)
    case("LinearAttention", 27, [q, k, v], 2, update_rule="linear", **heads)
    case("LinearAttention", 27, [q, k, v, some(2, 2, 2, 3)], 2, update_rule="linear", scale=0.5, **heads)
    case("LinearAttention", 27, [q, k, v, None, decay], 2, update_rule="gated", **heads)
    case("LinearAttention", 27, [q, k, v, None, -some(2, 3, 2, low=0)], 2, update_rule="gated", **heads)
    case("LinearAttention", 27, [q, k, v, some(2, 2, 2, 3), None, beta], 2, update_rule="delta", **heads)
    case("LinearAttention", 27, [q, k, v, some(2, 2, 2, 3), decay, beta[:, :, :1]], 2, **heads)
    x, w = some(2, 3, 5), some(3, 1, 3)
    for activation in [None, "silu", "swish"]:
        more = dict(activation=activation) if activation else {}
        case("CausalConvWithState", 27, [x, w], 2, **more)
        case("CausalConvWithState", 27, [x, w, some(3), some(2, 3, 2)], 2, **more)


def read_sizes():
    ints, x = lambda *v: np.array(v, "int64"), some(4, 6)
    case("Reshape", 13, [x, ints(-1, 8)])
    case("Reshape", 13, [x, ints(0, 3, 2)])
    case("Reshape", 14, [x, ints(24)])
    case("Slice", 13, [x, ints(1), ints(-1), C([1])])
    case("Slice", 13, [x, ints(3, -1), ints(-9, 0), C([0, 1]), C([-1, -2])])
    case("Expand", 13, [some(1, 3), ints(2, 1, 1)])
    case("Tile", 13, [some(2, 3), ints(2, 2)])
    case("TopK", 11, [x, ints(2)], 2)
    case("Pad", 13, [x, ints(1, 0, 0, 2)])
    case("Split", 13, [x, ints(2, 1, 3)], 3, axis=1)
    case("Trilu", 14, [x, np.array(1)])
    case("Trilu", 14, [x, np.array(-1)], upper=0)
    case("ConstantOfShape", 9, [ints(2, 3)])
    case("Range", 11, [np.array(2), np.array(9), np.array(3)])
    case("Range", 11, [np.array(9), np.array(2), np.array(-3)])
    case("Range", 11, [C(0, "int64"), np.array(4), C(1, "int64")])
    case("Range", 11, [np.array(0.5, "float32"), np.array(2, "float32"), np.array(0.25, "float32")])
    case("HannWindow", 17, [np.array(6)])
    case("CenterCropPad", 18, [x, ints(2, 8)])
    case("Resize", 13, [some(1, 1, 2, 2), None, None, ints(1, 1, 4, 3)], mode="linear")


def later_contrib():
    m = "com.microsoft."
    x, w, b = some(2, 3, 4), C(some(4, 12)), C(some(12))
    case(m + "Attention", 1, [x, w, b, None, some(2, 2, 2, 5, 2)], 2, num_heads=2)
    case(m + "Attention", 1, [x, w, b, None, some(2, 2, 2, 5, 2)], 2, num_heads=2, unidirectional=1)
    case(m + "Attention", 1, [x, C(some(4, 14)), C(some(14))], num_heads=2, qkv_hidden_sizes=[4, 4, 6])
    # onnxruntime has what one argument holds on other devices alone.
    def attended(q, k, v):
        scores = np.einsum("bshd,bthd->bhst", q, k) / 2
        shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        return np.einsum("bhst,bthd->bshd", shares, v).reshape(q.shape[0], q.shape[1], -1)

    all, q, both = some(2, 3, 2, 3, 4), some(2, 3, 8), some(2, 5, 2, 2, 4)
    case(m + "MultiHeadAttention", 1, [all], own=[attended(*np.moveaxis(all, 3, 0))], num_heads=2)
    own = attended(q.reshape(2, 3, 2, 4), *np.moveaxis(both, 3, 0))
    case(m + "MultiHeadAttention", 1, [q, both], own=[own], num_heads=2)
    bytes = lambda *sizes: C(some(*sizes, dtype="uint8", low=100, high=156))
    scale, zero = C(np.array([0.03125], "float32")), C(np.array([128], "uint8"))
    tail = [scale, zero, scale, zero]
    lstm = m + "DynamicQuantizeLSTM"
    case(lstm, 1, [some(4, 1, 3), bytes(1, 3, 8), bytes(1, 2, 8), C(some(1, 16)), None, None, None, None] + tail, 3, hidden_size=2)
    case(lstm, 1, [some(3, 1, 3), bytes(1, 3, 8), bytes(1, 2, 8), None, None, some(1, 1, 2), some(1, 1, 2), None] + tail, 3, hidden_size=2, direction="reverse", clip=0.5)
    scale, zero = C(np.array([0.03125, 0.0625], "float32")), C(np.array([128, 120], "uint8"))
    case(lstm, 1, [some(3, 1, 3), bytes(2, 3, 8), bytes(2, 2, 8), C(some(2, 16)), None, None, None, None, scale, zero, scale, zero], 3, hidden_size=2, direction="bidirectional")
    gates = ["HardSigmoid", "Tanh", "LeakyRelu"]
    scale, zero = C(np.array([0.03125], "float32")), C(np.array([128], "uint8"))
    case(lstm, 1, [some(3, 1, 3), bytes(1, 3, 8), bytes(1, 2, 8), None, None, None, None, None, scale, zero, scale, zero], 3, hidden_size=2, activations=gates, activation_alpha=[0.25, 0.5], activation_beta=[0.5], input_forget=1)
    i32 = lambda *v: np.array(v, "int32")
    number = lambda v: np.array(v, "int32")
    cos, sin = some(9, 8), some(9, 8)
    group = m + "GroupQueryAttention"
    heads = dict(num_heads=4, kv_num_heads=2)
    first = lambda s: [some(2, s, 64), some(2, s, 32), some(2, s, 32)]
    past = lambda n: [some(2, 2, n, 16), some(2, 2, n, 16)]
    none = [np.zeros((2, 2, 0, 16), "float32")] * 2
    case(group, 1, first(3) + none + [i32(2, 2), number(3)], 3, **heads)
    case(group, 1, first(3) + [None, None, i32(2, 2), number(3)], 3, **heads)
    case(group, 1, first(1) + past(4) + [i32(4, 4), number(5)], 3, **heads)
    case(group, 1, first(1) + past(4) + [i32(4, 4), C(5, "int32"), cos, sin], 3, do_rotary=1, **heads)
    case(group, 1, first(3) + none + [i32(2, 2), number(3), cos, sin], 3, do_rotary=1, rotary_interleaved=1, **heads)
    case(group, 1, [some(2, 3, 128)] + [None, None] + none + [i32(2, 2), number(3), cos, sin], 3, do_rotary=1, **heads)
    for more in [dict(scale=0.25), dict(softcap=2.0), dict(local_window_size=2), dict(smooth_softmax=1)]:
        case(group, 1, first(4) + none + [i32(3, 3), number(4)], 3, **heads, **more)
        case(group, 1, first(1) + past(4) + [i32(4, 4), number(5)], 3, **heads, **more)
    case(group, 1, first(1) + past(4) + [i32(4, 2), number(5), cos, sin], 3, do_rotary=1, **heads)


def main():
    parts = [elementwise, casts, pairs, old_pairs, reduced, shapes, places, norms, products, windows, quantized, networks]
    parts += [rows, more_elementwise, losses, pools, smooth, bytes, signals, grids, attentions, contrib, later, chosen, states, read_sizes, later_contrib]
    for part in parts:
        print(f"# {part.__name__}")
        part()


main()
