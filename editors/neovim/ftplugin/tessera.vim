if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=#\ %s
setlocal comments=b:#
setlocal expandtab shiftwidth=4 softtabstop=4
setlocal suffixesadd=.tsr
setlocal autoindent

let b:undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< suffixesadd< autoindent<'
