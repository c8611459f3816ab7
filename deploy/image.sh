#!/bin/sh
# Makes the folder of the program in the container image: the binary, the MP3 decoder as a package of
# its own (LGPL), licences and the list of components. The Dockerfile runs it, and so do the tests.
#
#   deploy/image.sh OUT [options of scripts/build.ts]
set -eu
cd "$(dirname "$0")/.."
out=$1
shift
bun install --frozen-lockfile --silent
bun scripts/build.ts --out "$out/build" "$@"
mkdir -p "$out/image"
cp "$out/build/sluice" "$out/build/sluice.cdx.json" LICENSE THIRD_PARTY_NOTICES "$out/image/"
for package in mpg123-decoder @wasm-audio-decoders/common @eshaz/web-worker simple-yenc; do
  mkdir -p "$out/image/node_modules/$(dirname "$package")"
  cp -RL "node_modules/$package" "$out/image/node_modules/$package"
done
chmod -R go+rX "$out/image"
