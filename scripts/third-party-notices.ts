import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'

const root = join(import.meta.dir, '..')

const intro = `Third-party notices
===================

Generated from bun.lock and the installed packages by "bun run docs:generate"; do not edit.

Sluice itself is under the MIT licence (LICENSE). A production install contains the packages below.

The MP3 decoder: mpg123-decoder (MIT) contains libmpg123, compiled to WebAssembly. libmpg123 is under
the GNU Lesser General Public License, version 2.1 (https://www.gnu.org/licenses/old-licenses/lgpl-2.1.html);
its source is at https://www.mpg123.de. The decoder is a package of its own that can be replaced by
another build. The bundle and the binary do not contain it: they load it from a folder (docs/installation.md).

The Opus decoder: opus-decoder (MIT) contains libopus, compiled to WebAssembly, under the BSD
3-Clause licence (https://opus-codec.org/license/).

The binary contains Bun (MIT, https://bun.com/docs/project/license), which is linked with JavaScriptCore
and other parts of WebKit, under the GNU Library General Public License, version 2
(https://www.gnu.org/licenses/old-licenses/lgpl-2.0.html). Their sources are at
https://github.com/oven-sh/WebKit. To use another build of Bun, start the bundle of the npm package with it.
`

type Package = {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly text: string
}

/** Name, version and licence of every package of a production install, and each licence text once. */
export function renderNotices(): string {
  const packages = listProductionPackages()
    .map(readPackage)
    .toSorted((a, b) => `${a.name} ${a.version}`.localeCompare(`${b.name} ${b.version}`, 'en'))
  const byText = Map.groupBy(packages, ({ text }) => text)
  const width = Math.max(...packages.map(({ name, version }) => name.length + version.length + 1))
  return [
    intro,
    ...packages.map(
      ({ name, version, license }) => `${`${name} ${version}`.padEnd(width)}  ${license}`,
    ),
    ...[...byText]
      .filter(([text]) => text !== '')
      .map(
        ([text, users]) =>
          `\n${'-'.repeat(78)}\n${[...new Set(users.map(({ name }) => name))].join(', ')}\n\n${text}`,
      ),
    '',
  ].join('\n')
}

/** Lock file keys of everything that the production dependencies need, such as `a` or `a/b`. */
export function listProductionPackages(): string[] {
  const lock = asRecord(Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8')))
  const locked = asRecord(lock['packages'])
  const workspace = asRecord(asRecord(lock['workspaces'])[''])
  const found = new Set(Object.keys(asRecord(workspace['dependencies'])))
  for (const key of found) {
    const entry = locked[key]
    const manifest = Array.isArray(entry) ? entry.find(isRecord) : undefined
    // Peers are not installed by themselves (bunfig.toml).
    for (const name of Object.keys(asRecord(asRecord(manifest)['dependencies']))) {
      const resolved = resolve(key, name, locked)
      if (resolved !== undefined) found.add(resolved)
    }
  }
  return [...found]
}

/** As Node resolves it: nested below the package that needs it, below its parents, or at the top. */
function resolve(from: string, name: string, locked: JsonObject): string | undefined {
  const parents = splitKey(from)
  for (let depth = parents.length; depth >= 0; depth--) {
    const key = [...parents.slice(0, depth), name].join('/')
    if (key in locked) return key
  }
  return undefined
}

/** `@a/b/c` is the package `c` below `@a/b`. */
function splitKey(key: string): string[] {
  return key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []
}

export function readPackage(key: string): Package {
  const names = splitKey(key)
  const folder = join(root, 'node_modules', names.join('/node_modules/'))
  const manifest = asRecord(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')))
  return {
    name: names.at(-1) ?? key,
    version: String(manifest['version']),
    license: String(manifest['license'] ?? 'see below'),
    text: licenseText(folder),
  }
}

function licenseText(folder: string): string {
  if (!existsSync(folder)) return ''
  const files = readdirSync(folder).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
  return files
    .toSorted()
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll('\r', '').trim())
    .join('\n\n')
}
