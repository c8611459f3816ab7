#!/bin/sh
# Runs before `bun start`, `npm start` and `bun run check`; its arguments go to `bun install`.
if ! command -v bun >/dev/null; then
  version=$(sed -n 's/.*"packageManager": "bun@\([^"]*\)".*/\1/p' package.json)
  echo "Sluice runs on Bun, which is not on the PATH. Start it with: npx -y bun@$version start" >&2
  exit 1
fi
exec bun scripts/install-packages.ts "$@"
