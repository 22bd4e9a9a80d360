#!/bin/sh
# Installs what the extension needs, bundles it and makes `dist/tessera.vsix`.
set -eu
cd "$(dirname "$0")"

npm install --no-audit --no-fund
mkdir -p dist
# The library comes bundled, so the package holds no node_modules.
npx esbuild src/extension.js --bundle --platform=node --target=node20 --format=cjs --external:vscode --minify --outfile=dist/extension.js
cp ../../LICENSE dist/LICENSE.txt
npx vsce package --no-dependencies --skip-license --allow-missing-repository --out dist/tessera.vsix
echo "dist/tessera.vsix is ready: code --install-extension editors/vscode/dist/tessera.vsix"
