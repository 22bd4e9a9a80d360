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
syntax keyword tesseraOperators contained abs acos add all all_reduce angle any arange argmax argmin argsort
syntax keyword tesseraOperators contained array asin atan atan2 attention avg_pool batch_norm bit_and bit_not
syntax keyword tesseraOperators contained bit_or bit_xor broadcast_to cast ceil clip complex concat conj
syntax keyword tesseraOperators contained conv1d conv2d conv3d conv_transpose2d copysign cos cosh
syntax keyword tesseraOperators contained cross_entropy cumprod cumsum dequantize diag div dot dropout einsum
syntax keyword tesseraOperators contained elu embedding empty empty_like eq erf exp exp2 expand expand_dims
syntax keyword tesseraOperators contained expm1 eye fake_quantize fft fft2 fftfreq fftshift flatten flip floor
syntax keyword tesseraOperators contained floor_div fma full full_like gather ge gelu gelu_tanh gt hypot ifft
syntax keyword tesseraOperators contained ifft2 ifftshift imag irfft irfft2 isfinite isinf isnan l1 layer_norm
syntax keyword tesseraOperators contained le leaky_relu linspace log log10 log1p log2 log_softmax logical_and
syntax keyword tesseraOperators contained logical_not logical_or logical_xor logsumexp lt matmul max max_pool
syntax keyword tesseraOperators contained maximum mean min minimum mod moe_combine moe_dispatch moveaxis mse
syntax keyword tesseraOperators contained mul ne neg nonzero one_hot ones ones_like outer pad permute pow prod
syntax keyword tesseraOperators contained quantize random.bernoulli random.choice random.fold_in random.key
syntax keyword tesseraOperators contained random.normal random.permutation random.randint random.split
syntax keyword tesseraOperators contained random.uniform real reciprocal relu repeat reshape rfft rfft2
syntax keyword tesseraOperators contained rfftfreq rms_norm roll rope round rsqrt scatter_add shl shr sigmoid
syntax keyword tesseraOperators contained sign silu sin sinh slice softmax softplus sort spectral_conv split
syntax keyword tesseraOperators contained sqrt square squeeze stack std sub sum swapaxes take take_along_axis
syntax keyword tesseraOperators contained tan tanh tensordot tile topk trace transpose tri tril triu trunc
syntax keyword tesseraOperators contained unique unsqueeze var where zeros zeros_like
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
