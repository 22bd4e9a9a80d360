;;; tessera-mode.el --- Editing Tessera programs -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: languages
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A major mode for the tensor language Tessera (files `*.tsr'): colours, indentation, comments,
;; and the language server by Eglot.

;;; Code:

(defgroup tessera nil
  "Editing Tessera programs."
  :group 'languages)

(defcustom tessera-program "tessera"
  "The Tessera program, which is its language server, too."
  :type 'string)

(defcustom tessera-indent-offset 4
  "Columns of one level of indentation."
  :type 'integer
  :safe #'integerp)

(defconst tessera-keywords
  '(
    ;; generated: keywords
    "and" "as" "assert" "break" "continue" "def" "elif" "else" "for" "from" "if" "import" "in" "is" "lambda" "not"
    "or" "pass" "return" "struct" "while" "with"
    ;; end
    )
  "Reserved words but for constants.")

(defconst tessera-functions
  '(
    ;; generated: functions
    "abs" "all" "any" "bool" "chr" "dict" "divmod" "enumerate" "filter" "float" "int" "isinstance" "len" "list"
    "map" "max" "min" "ord" "pow" "print" "range" "repr" "reversed" "round" "sorted" "str" "sum" "tuple" "zip"
    ;; end
    )
  "Functions in scope everywhere.")

(defconst tessera-modules
  '(
    ;; generated: modules
    "autodiff" "dist" "graph" "io" "math" "numerics" "op" "random" "schedule" "std" "sys" "tile" "time" "tree"
    ;; end
    )
  "Modules in scope everywhere.")

(defconst tessera-dtypes
  '(
    ;; generated: dtypes
    "bf16" "bool" "c64" "f16" "f32" "f64" "fp8_e4m3" "fp8_e5m2" "i16" "i32" "i64" "i8" "tf32" "u8"
    ;; end
    )
  "Types of elements.")

(defconst tessera-operators
  '(
    ;; generated: operators
    "abs" "acos" "acosh" "add" "all" "all_reduce" "angle" "any" "arange" "argmax" "argmin" "argsort" "argwhere"
    "array" "asin" "asinh" "atan" "atan2" "atanh" "attention" "avg_pool" "batch_norm" "betainc" "betainc_da"
    "betainc_dx" "betaln" "bincount" "bit_and" "bit_not" "bit_or" "bit_xor" "broadcast_to" "cast" "cbrt" "ceil"
    "cholesky" "clip" "complex" "concat" "conj" "conv1d" "conv2d" "conv3d" "conv_transpose2d" "copysign" "cos"
    "cosh" "count_unique" "cross_entropy" "cummax" "cummin" "cumprod" "cumsum" "dequantize" "diag" "digamma" "div"
    "dot" "dropout" "eig" "eigh" "eigvals" "eigvalsh" "einsum" "elu" "embedding" "empty" "empty_like" "eq" "erf"
    "erfc" "erfinv" "exp" "exp2" "expand" "expand_dims" "expm1" "eye" "fake_quantize" "fft" "fft2" "fftfreq"
    "fftshift" "flatten" "flip" "floor" "floor_div" "fma" "full" "full_like" "gamma" "gammainc" "gammainc_da"
    "gammainc_dx" "gammaincc" "gather" "ge" "gelu" "gelu_tanh" "gt" "hypot" "i0" "i0e" "i1" "i1e" "ifft" "ifft2"
    "ifftshift" "imag" "irfft" "irfft2" "isfinite" "isinf" "isnan" "l1" "layer_norm" "le" "leaky_relu" "lgamma"
    "linspace" "log" "log10" "log1p" "log2" "log_ndtr" "log_sigmoid" "log_softmax" "logaddexp" "logcumsumexp"
    "logical_and" "logical_not" "logical_or" "logical_xor" "logit" "logsumexp" "lt" "lu_factor" "matmul" "max"
    "max_pool" "maximum" "mean" "median" "min" "minimum" "mod" "moe_combine" "moe_dispatch" "moveaxis" "mse" "mul"
    "ndtr" "ndtri" "ne" "neg" "nonzero" "one_hot" "ones" "ones_like" "outer" "pad" "percentile" "permute"
    "polygamma" "pow" "prod" "qr" "quantile" "quantize" "random.bernoulli" "random.beta" "random.binomial"
    "random.categorical" "random.cauchy" "random.chisquare" "random.choice" "random.dirichlet"
    "random.exponential" "random.fold_in" "random.gamma" "random.geometric" "random.gumbel" "random.key"
    "random.laplace" "random.loggamma" "random.logistic" "random.normal" "random.permutation" "random.poisson"
    "random.rademacher" "random.randint" "random.split" "random.t" "random.truncated_normal" "random.uniform"
    "real" "reciprocal" "relu" "repeat" "reshape" "rfft" "rfft2" "rfftfreq" "rms_norm" "roll" "rope" "round"
    "rsqrt" "scatter_add" "searchsorted" "segment_max" "segment_mean" "segment_min" "segment_sum" "shl" "shr"
    "sigmoid" "sign" "silu" "sin" "sinc" "sinh" "slice" "softmax" "softplus" "softsign" "solve" "solve_triangular"
    "sort" "spectral_conv" "split" "sqrt" "square" "squeeze" "stack" "std" "sub" "sum" "svd" "svdvals" "swapaxes"
    "take" "take_along_axis" "tan" "tanh" "tensordot" "tile" "topk" "trace" "transpose" "tri" "tril" "triu"
    "trunc" "unique" "unsqueeze" "var" "where" "xlog1py" "xlogy" "zeros" "zeros_like"
    ;; end
    )
  "Members of `op' that are operators on tensors.")

(defvar tessera-font-lock-keywords
  `(("^[ \t]*@[ \t]*\\([[:word:]_.]+\\)" 1 font-lock-preprocessor-face)
    ("\\_<def\\_>[ \t]+\\([[:word:]_]+\\)" 1 font-lock-function-name-face)
    ("\\_<struct\\_>[ \t]+\\([[:word:]_]+\\)" 1 font-lock-type-face)
    (,(regexp-opt tessera-keywords 'symbols) . font-lock-keyword-face)
    (,(regexp-opt '("True" "False" "None") 'symbols) . font-lock-constant-face)
    (,(concat "\\_<op\\.\\(" (regexp-opt tessera-operators) "\\)\\_>") 1 font-lock-builtin-face)
    (,(concat "\\(?:^\\|[^.[:word:]_]\\)\\(" (regexp-opt tessera-modules) "\\)\\.") 1 font-lock-constant-face)
    (,(concat "\\(?:^\\|[^.[:word:]_]\\)\\(" (regexp-opt tessera-functions) "\\)[ \t]*(") 1 font-lock-builtin-face)
    (,(regexp-opt (append tessera-dtypes '("Tensor" "int" "float" "bool" "str" "list" "dict" "tuple")) 'symbols)
     . font-lock-type-face))
  "Colours of Tessera.")

(defvar tessera-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?' "\"" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?_ "_" table)
    (dolist (sign '(?. ?+ ?- ?* ?/ ?% ?@ ?& ?| ?^ ?~ ?< ?> ?= ?! ?: ?,))
      (modify-syntax-entry sign "." table))
    table)
  "Syntax table of `tessera-mode'.")

(defun tessera--triple-quote ()
  "Mark the outer quote of the triple quote that ends before point."
  (let* ((end (point))
         (start (- end 3))
         (state (save-excursion (syntax-ppss start)))
         (open (nth 8 state)))
    (cond
     ;; It opens a string.
     ((not open)
      (put-text-property start (1+ start) 'syntax-table (string-to-syntax "|")))
     ;; It closes one that three of the same quotes opened.
     ((and (eq (nth 3 state) t)
           (eq (char-after open) (char-before end)))
      (put-text-property (1- end) end 'syntax-table (string-to-syntax "|"))))))

(defconst tessera--propertize
  (syntax-propertize-rules
   ("\"\"\"\\|'''" (0 (ignore (tessera--triple-quote)))))
  "Finds strings over several lines.")

(defun tessera--line-state ()
  "The line before this one: its indentation, and whether it ends with a colon."
  (save-excursion
    (beginning-of-line)
    (let (found)
      (while (and (not found) (zerop (forward-line -1)))
        (setq found (not (or (nth 8 (syntax-ppss))
                             (looking-at-p "[ \t]*\\(?:#\\|$\\)")))))
      (if (not found)
          (cons 0 nil)
        (let ((open (nth 9 (syntax-ppss)))
              (colon (save-excursion
                       (end-of-line)
                       (let ((state (syntax-ppss)))
                         (when (nth 4 state) (goto-char (nth 8 state))))
                       (skip-chars-backward " \t")
                       (eq (char-before) ?:))))
          ;; A line that brackets continue counts from where they open.
          (when open (goto-char (car open)))
          (cons (current-indentation) colon))))))

(defun tessera--indentation ()
  "Where the current line should begin."
  (save-excursion
    (back-to-indentation)
    (let* ((state (syntax-ppss (line-beginning-position)))
           (open (nth 1 state))
           (closes (looking-at-p "[])}]"))
           (alternative (looking-at-p "\\(?:elif\\|else\\)\\_>")))
      (cond
       ((nth 3 state) (current-indentation))
       (open
        (goto-char open)
        (+ (current-indentation) (if closes 0 tessera-indent-offset)))
       (t
        (let ((line (tessera--line-state)))
          (cond
           ((cdr line) (+ (car line) tessera-indent-offset))
           (alternative (max 0 (- (car line) tessera-indent-offset)))
           (t (car line)))))))))

(defun tessera-indent-line ()
  "Indent the current line.
Pressed again, the key leaves one block more.
Behind the outermost block it begins anew."
  (interactive)
  (let* ((now (current-indentation))
         (behind (- (current-column) now))
         (again (and (eq this-command 'indent-for-tab-command) (eq last-command this-command)))
         (to (if (and again (> now 0))
                 (max 0 (- now tessera-indent-offset))
               (tessera--indentation))))
    (indent-line-to to)
    (when (> behind 0) (move-to-column (+ to behind)))))

;;;###autoload
(define-derived-mode tessera-mode prog-mode "Tessera"
  "Major mode for Tessera programs."
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "#+[ \t]*")
  (setq-local indent-tabs-mode nil)
  (setq-local font-lock-defaults '(tessera-font-lock-keywords))
  (setq-local syntax-propertize-function tessera--propertize)
  (setq-local parse-sexp-lookup-properties t)
  (setq-local indent-line-function #'tessera-indent-line)
  (setq-local electric-indent-inhibit t)
  (setq-local imenu-generic-expression
              '((nil "^[ \t]*def[ \t]+\\([[:word:]_]+\\)" 1)
                ("Structs" "^struct[ \t]+\\([[:word:]_]+\\)" 1))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.tsr\\'" . tessera-mode))

(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               (cons 'tessera-mode (lambda (&rest _) (list tessera-program "lsp")))))

(provide 'tessera-mode)

;;; tessera-mode.el ends here
