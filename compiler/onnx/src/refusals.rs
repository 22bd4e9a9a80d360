//! Operators that are known and have no translation, with the reason: docs/onnx.md has the same table.

const TEXTS: &str = "tensors of strings have no counterpart";
const TRAINING: &str = "a step of training is a program of its own (`std.optim`)";
const LEARNERS: &str = "models of scikit-learn and of trees are not translated";
const TABLES: &str = "maps and columns of tables have no counterpart";

/// Operators and why each is refused, sorted by name.
pub const REFUSED: &[(&str, &str)] = &[
    ("BitCast", "no operator here reads bits as another dtype"),
    ("ImageDecoder", "pictures are read from files, by `io.read_image`"),
    ("MaxRoiPool", "`RoiAlign` has taken its place"),
    ("RegexFullMatch", TEXTS),
    ("StringConcat", TEXTS),
    ("StringNormalizer", TEXTS),
    ("StringSplit", TEXTS),
    ("TfIdfVectorizer", "texts are counted before a model is called"),
    ("ai.onnx.ml.ArrayFeatureExtractor", TABLES),
    ("ai.onnx.ml.Binarizer", LEARNERS),
    ("ai.onnx.ml.CastMap", TABLES),
    ("ai.onnx.ml.CategoryMapper", TEXTS),
    ("ai.onnx.ml.DictVectorizer", TABLES),
    ("ai.onnx.ml.FeatureVectorizer", TABLES),
    ("ai.onnx.ml.Imputer", LEARNERS),
    ("ai.onnx.ml.LabelEncoder", TEXTS),
    ("ai.onnx.ml.LinearClassifier", LEARNERS),
    ("ai.onnx.ml.LinearRegressor", LEARNERS),
    ("ai.onnx.ml.Normalizer", LEARNERS),
    ("ai.onnx.ml.OneHotEncoder", TEXTS),
    ("ai.onnx.ml.SVMClassifier", LEARNERS),
    ("ai.onnx.ml.SVMRegressor", LEARNERS),
    ("ai.onnx.ml.Scaler", LEARNERS),
    ("ai.onnx.ml.TreeEnsemble", LEARNERS),
    ("ai.onnx.ml.TreeEnsembleClassifier", LEARNERS),
    ("ai.onnx.ml.TreeEnsembleRegressor", LEARNERS),
    ("ai.onnx.ml.ZipMap", TABLES),
    ("ai.onnx.preview.FlexAttention", "its graphs of scores are not translated"),
    ("ai.onnx.preview.training.Adagrad", TRAINING),
    ("ai.onnx.preview.training.Adam", TRAINING),
    ("ai.onnx.preview.training.Gradient", "derivatives are those of `autodiff.grad`"),
    ("ai.onnx.preview.training.Momentum", TRAINING),
    ("com.microsoft.BeamSearch", "a whole search is a program around a model (`std.sampling`)"),
    (
        "com.microsoft.GatherBlockQuantized",
        "rows of numbers in few bits are not chosen yet; `MatMulNBits` multiplies by them",
    ),
    ("com.microsoft.GreedySearch", "a whole search is a program around a model (`std.sampling`)"),
    ("com.microsoft.MoE", "experts are not translated yet"),
    ("com.microsoft.PackedAttention", "sequences without padding between them have no counterpart"),
    ("com.microsoft.PackedMultiHeadAttention", "sequences without padding between them have no counterpart"),
    ("com.microsoft.QMoE", "experts are not translated yet"),
    ("com.microsoft.Sampling", "a whole search is a program around a model (`std.sampling`)"),
    ("com.microsoft.Tokenizer", TEXTS),
];

/// Why an operator with this name (behind its domain, where that is not the standard's) is refused.
pub fn reason(operator: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| *name == operator).map(|(_, why)| *why)
}
