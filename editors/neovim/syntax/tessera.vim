" Colours of Tessera where no parser of tree-sitter is installed.

if exists('b:current_syntax')
  finish
endif

syntax match tesseraDefinition /\%(\<\%(def\|struct\)\s\+\)\@<=\k\+/
syntax match tesseraDecorator /^\s*@\s*\zs[[:keyword:].]\+/
syntax match tesseraMember /\%(\<op\.\)\@<=\k\+/ contains=tesseraOperators

" generated: keywords
syntax keyword tesseraKeywords and as assert break continue def elif else for from if import in is lambda not
syntax keyword tesseraKeywords or pass return struct while with
" end
syntax keyword tesseraConstant True False None
syntax keyword tesseraType Tensor int float bool str list dict tuple
" generated: functions
syntax keyword tesseraFunctions abs all any bool chr dict divmod enumerate filter float int isinstance len
syntax keyword tesseraFunctions list map max min ord pow print range repr reversed round sorted str sum tuple
syntax keyword tesseraFunctions zip
" end
" generated: modules
syntax keyword tesseraModules autodiff dist graph io math numerics op random schedule std sys tile time tree
" end
" generated: dtypes
syntax keyword tesseraDtypes bf16 bool c64 f16 f32 f64 fp8_e4m3 fp8_e5m2 i16 i32 i64 i8 tf32 u8
" end
" generated: operators
syntax keyword tesseraOperators contained abs acos acosh add all all_reduce angle any arange argmax argmin
syntax keyword tesseraOperators contained argsort argwhere array asin asinh atan atan2 atanh attention
syntax keyword tesseraOperators contained avg_pool batch_norm betainc betainc_da betainc_dx betaln bincount
syntax keyword tesseraOperators contained bit_and bit_not bit_or bit_xor broadcast_to cast cbrt ceil cholesky
syntax keyword tesseraOperators contained clip complex concat conj conv1d conv2d conv3d conv_transpose2d
syntax keyword tesseraOperators contained copysign cos cosh count_unique cross_entropy cummax cummin cumprod
syntax keyword tesseraOperators contained cumsum dequantize diag digamma div dot dropout eig eigh eigvals
syntax keyword tesseraOperators contained eigvalsh einsum elu embedding empty empty_like eq erf erfc erfinv
syntax keyword tesseraOperators contained exp exp2 expand expand_dims expm1 eye fake_quantize fft fft2 fftfreq
syntax keyword tesseraOperators contained fftshift flatten flip floor floor_div fma full full_like gamma
syntax keyword tesseraOperators contained gammainc gammainc_da gammainc_dx gammaincc gather ge gelu gelu_tanh
syntax keyword tesseraOperators contained gt hypot i0 i0e i1 i1e ifft ifft2 ifftshift imag irfft irfft2
syntax keyword tesseraOperators contained isfinite isinf isnan l1 layer_norm le leaky_relu lgamma linspace log
syntax keyword tesseraOperators contained log10 log1p log2 log_ndtr log_sigmoid log_softmax logaddexp
syntax keyword tesseraOperators contained logcumsumexp logical_and logical_not logical_or logical_xor logit
syntax keyword tesseraOperators contained logsumexp lt lu_factor matmul max max_pool maximum mean median min
syntax keyword tesseraOperators contained minimum mod moe_combine moe_dispatch moveaxis mse mul ndtr ndtri ne
syntax keyword tesseraOperators contained neg nonzero one_hot ones ones_like outer pad percentile permute
syntax keyword tesseraOperators contained polygamma pow prod qr quantile quantize random.bernoulli random.beta
syntax keyword tesseraOperators contained random.binomial random.categorical random.cauchy random.chisquare
syntax keyword tesseraOperators contained random.choice random.dirichlet random.exponential random.fold_in
syntax keyword tesseraOperators contained random.gamma random.geometric random.gumbel random.key
syntax keyword tesseraOperators contained random.laplace random.loggamma random.logistic random.normal
syntax keyword tesseraOperators contained random.permutation random.poisson random.rademacher random.randint
syntax keyword tesseraOperators contained random.split random.t random.truncated_normal random.uniform real
syntax keyword tesseraOperators contained reciprocal relu repeat reshape rfft rfft2 rfftfreq rms_norm roll
syntax keyword tesseraOperators contained rope round rsqrt scatter_add searchsorted segment_max segment_mean
syntax keyword tesseraOperators contained segment_min segment_sum shl shr sigmoid sign silu sin sinc sinh
syntax keyword tesseraOperators contained slice softmax softplus softsign solve solve_triangular sort
syntax keyword tesseraOperators contained spectral_conv split sqrt square squeeze stack std sub sum svd
syntax keyword tesseraOperators contained svdvals swapaxes take take_along_axis tan tanh tensordot tile topk
syntax keyword tesseraOperators contained trace transpose tri tril triu trunc unique unsqueeze var where
syntax keyword tesseraOperators contained xlog1py xlogy zeros zeros_like
" end

syntax match tesseraNumber /\<\%(0[xX][0-9A-Fa-f_]\+\|0[oO][0-7_]\+\|0[bB][01_]\+\|\d[0-9_]*\)\>/
syntax match tesseraNumber /\<\d[0-9_]*\%(\.[0-9_]*\)\=\%([eE][+-]\=\d[0-9_]*\)\=\>/
syntax match tesseraNumber /\%(\k\)\@<!\.\d[0-9_]*\%([eE][+-]\=\d[0-9_]*\)\=\>/

syntax match tesseraEscape /\\\%([ntr\\'"abfv0]\|x\x\{2}\|u\x\{4}\|U\x\{8}\|$\)/ contained
syntax match tesseraBraces /{{\|}}/ contained
syntax region tesseraValue matchgroup=tesseraSpecial start=/{/ end=/}/ contained contains=TOP
syntax match tesseraPrompt /^\s*\%(>>>\|\.\.\.\)\ze\%(\s\|$\)/ contained

syntax region tesseraString start=/[uU]\='/ end=/'/ skip=/\\./ oneline contains=tesseraEscape
syntax region tesseraString start=/[uU]\="/ end=/"/ skip=/\\./ oneline contains=tesseraEscape
syntax region tesseraString start=/[rR]'/ end=/'/ skip=/\\./ oneline
syntax region tesseraString start=/[rR]"/ end=/"/ skip=/\\./ oneline
syntax region tesseraString start=/\%([fF][rR]\=\|[rR][fF]\)'/ end=/'/ skip=/\\./ oneline contains=tesseraEscape,tesseraBraces,tesseraValue
syntax region tesseraString start=/\%([fF][rR]\=\|[rR][fF]\)"/ end=/"/ skip=/\\./ oneline contains=tesseraEscape,tesseraBraces,tesseraValue
syntax region tesseraString start=/[uUrR]\='''/ end=/'''/ skip=/\\./ contains=tesseraEscape,tesseraPrompt
syntax region tesseraString start=/[uUrR]\="""/ end=/"""/ skip=/\\./ contains=tesseraEscape,tesseraPrompt
syntax region tesseraString start=/\%([fF][rR]\=\|[rR][fF]\)'''/ end=/'''/ skip=/\\./ contains=tesseraEscape,tesseraBraces,tesseraValue
syntax region tesseraString start=/\%([fF][rR]\=\|[rR][fF]\)"""/ end=/"""/ skip=/\\./ contains=tesseraEscape,tesseraBraces,tesseraValue

syntax match tesseraComment /#.*$/

" A string may begin anywhere above.
syntax sync fromstart

highlight default link tesseraDefinition Function
highlight default link tesseraDecorator PreProc
highlight default link tesseraModules Include
highlight default link tesseraKeywords Keyword
highlight default link tesseraConstant Constant
highlight default link tesseraType Type
highlight default link tesseraDtypes Type
highlight default link tesseraFunctions Function
highlight default link tesseraOperators Function
highlight default link tesseraNumber Number
highlight default link tesseraString String
highlight default link tesseraEscape SpecialChar
highlight default link tesseraBraces SpecialChar
highlight default link tesseraSpecial Special
highlight default link tesseraPrompt Special
highlight default link tesseraComment Comment

let b:current_syntax = 'tessera'
