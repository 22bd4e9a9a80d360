autocmd BufRead,BufNewFile *.tsr setfiletype tessera
