/**
 * `bun run console:build` writes the console into `console/dist`: hashed files, `index.html`, and a
 * manifest of all of them.
 */
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'

const source = join(import.meta.dir, '../console/src')
const defaultFolder = join(import.meta.dir, '../console/dist')

type ConsoleFile = {
  /** Relative to the folder, and to `/console/`. */
  readonly path: string
  readonly type: string
  readonly bytes: number
  /** Whether the page needs it before it shows anything. */
  readonly firstLoad: boolean
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  html: 'text/html; charset=utf-8',
}

export async function buildConsole(folder: string = defaultFolder): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const assets = join(folder, 'assets')
  mkdirSync(assets, { recursive: true })
  const built = await Bun.build({
    entrypoints: [join(source, 'main.tsx'), join(source, 'styles/index.css')],
    outdir: assets,
    target: 'browser',
    format: 'esm',
    splitting: true,
    minify: true,
    naming: {
      entry: '[name]-[hash].[ext]',
      chunk: '[name]-[hash].[ext]',
      asset: '[name]-[hash].[ext]',
    },
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const entry = (ending: string) => {
    const found = built.outputs.find(({ kind, path }) =>
      kind === 'entry-point' || ending === '.css' ? path.endsWith(ending) : false,
    )
    if (found === undefined) throw new Error(`The build made no ${ending} file.`)
    return `assets/${basename(found.path)}`
  }
  const script = entry('.js')
  const style = entry('.css')
  const icon = addHashed(join(source, 'icon.svg'), assets)
  const html = readFileSync(join(source, 'index.html'), 'utf8')
    .replace('{icon}', icon)
    .replace('{style}', style)
    .replace('{script}', script)
  writeFileSync(join(folder, 'index.html'), html)
  const first = new Set([script, style, 'index.html', ...staticImports(assets, basename(script))])
  const files = [...readdirSync(assets).map((name) => `assets/${name}`), 'index.html'].map(
    (path): ConsoleFile => ({
      path,
      type: types[path.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
      bytes: statSync(join(folder, path)).size,
      firstLoad: first.has(path),
    }),
  )
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify({ files }, null, 2)}\n`)
}

function addHashed(file: string, assets: string): string {
  const [name, ending] = basename(file).split('.')
  const hash = Bun.hash(readFileSync(file)).toString(36).slice(0, 8)
  cpSync(file, join(assets, `${name}-${hash}.${ending}`))
  return `assets/${name}-${hash}.${ending}`
}

/** The chunks that a script loads at once, directly or not. */
function staticImports(assets: string, script: string, seen = new Set<string>()): Set<string> {
  const { imports } = new Bun.Transpiler({ loader: 'js' }).scan(
    readFileSync(join(assets, script), 'utf8'),
  )
  for (const { path, kind } of imports) {
    const name = `assets/${basename(path)}`
    if (kind !== 'import-statement' || seen.has(name)) continue
    seen.add(name)
    staticImports(assets, basename(path), seen)
  }
  return seen
}

if (import.meta.main) await buildConsole()
