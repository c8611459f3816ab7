/**
 * `bun run build` writes what is released into `dist`: the npm package, which is also the bundle, and
 * the single binary of this platform.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BunPlugin, zstdCompress } from 'bun'
import manifest from '../package.json' with { type: 'json' }
import { codings, compressWith } from '../src/web-console/compress.ts'
import type { EmbeddedFile } from '../src/web-console/embedded-files.ts'
import { readManifest } from '../src/web-console/files.ts'
import { buildConsole } from './build-console.ts'
import { releaseManifest } from './release-manifest.ts'
import { renderSbom } from './sbom.ts'

const root = join(import.meta.dir, '..')
/** The main program, then its threads (`threadProgram` in src/lib/own-program.ts). */
const entrypoints = [
  'src/main.ts',
  'db/pglite-worker.ts',
  'src/inference/token-count/tokenizer-thread.ts',
].map((path) => join(root, path))
/** LGPL: installed separately, so that everybody may replace it. */
const external = ['mpg123-decoder']
/** Files that are read as a whole. The vector extension is a gzip archive already. */
const compressFiles: BunPlugin = {
  name: 'compress files',
  setup(build) {
    const cache = new Map<string, Promise<Buffer>>()
    const filter =
      /\.(wasm|data|tiktoken)$|\/(swagger-ui-bundle|standalone)\.js$|\/swagger-ui\.css$/
    build.onLoad({ filter }, async ({ path }) => {
      const compressed = cache.get(path) ?? compress(path)
      cache.set(path, compressed)
      return { contents: await compressed, loader: 'file' }
    })
  },
}

async function compress(path: string): Promise<Buffer> {
  return zstdCompress(await Bun.file(path).bytes(), { level: Number(values.compression) })
}

/** A binary has no folder of migrations, so the module that reads it becomes what it read. */
const inlineMigrations: BunPlugin = {
  name: 'inline migrations',
  setup(build) {
    build.onLoad({ filter: /\/db\/migration-files\.ts$/ }, async ({ path }) => {
      const { migrations } = await import(path)
      return { contents: `export const migrations = ${JSON.stringify(migrations)}`, loader: 'js' }
    })
  },
}

/** Likewise for the built console. */
const embedConsole: BunPlugin = {
  name: 'embed the console',
  setup(build) {
    build.onLoad({ filter: /\/src\/web-console\/embedded-files\.ts$/ }, () => {
      return {
        contents: `export const embeddedFiles = ${JSON.stringify(consoleFiles)}`,
        loader: 'js',
      }
    })
  },
}
/** Set before: a build inside of a build never ends. */
let consoleFiles: readonly EmbeddedFile[] = []

async function packConsole(): Promise<EmbeddedFile[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  try {
    await buildConsole(folder)
    const listed = await readManifest(folder)
    return await Promise.all(
      listed.map(async ({ path, type }) => {
        const content = await Bun.file(join(folder, path)).bytes()
        const [br, zstd, gzip] = await Promise.all(
          codings.map(async (coding) =>
            Buffer.from(await compressWith(coding, content)).toString('base64'),
          ),
        )
        return { path, type, br: br ?? '', zstd: zstd ?? '', gzip: gzip ?? '' }
      }),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const common = {
  entrypoints,
  root,
  target: 'bun',
  splitting: true,
  // Names stay, because Elysia reads the sources of handlers, and for stack traces.
  minify: { whitespace: true, syntax: true, identifiers: false },
  naming: { entry: '[name].[ext]', chunk: 'chunk-[hash].[ext]', asset: '[name]-[hash].[ext]' },
  external,
  plugins: [compressFiles, inlineMigrations, embedConsole],
} satisfies Partial<Bun.BuildConfig>

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'dist') },
    /** Of zstd: 19 takes ten seconds longer than 3 and saves 2 MB. */
    compression: { type: 'string', default: '19' },
    /** Another platform than this one, such as `bun-linux-arm64`. */
    target: { type: 'string' },
  },
})
const dist = values.out
const packageFolder = join(dist, 'npm')

rmSync(dist, { recursive: true, force: true })
mkdirSync(join(packageFolder, 'bin'), { recursive: true })
await Bun.write(join(dist, 'sluice.cdx.json'), renderSbom())
consoleFiles = await packConsole()
await buildPackage()
await buildBinary()

/** The bundle and its files, as a package. */
async function buildPackage(): Promise<void> {
  await Bun.build({
    ...common,
    define: { SLUICE_FORM: '"bundle"' },
    outdir: join(packageFolder, 'lib'),
  })
  cpSync(join(root, 'scripts/npm-launcher.js'), join(packageFolder, 'bin/sluice.js'))
  chmodSync(join(packageFolder, 'bin/sluice.js'), 0o755)
  for (const name of ['README.md', 'LICENSE', 'THIRD_PARTY_NOTICES', 'CHANGELOG.md']) {
    cpSync(join(root, name), join(packageFolder, name))
  }
  await Bun.write(join(packageFolder, 'package.json'), releaseManifest(manifest))
}

async function buildBinary(): Promise<void> {
  const outfile = join(dist, 'sluice')
  await Bun.build({
    ...common,
    define: { SLUICE_FORM: '"binary"' },
    compile: {
      outfile,
      // The folder that it is started in must not change what it runs.
      autoloadBunfig: false,
      // Packages that are installed separately have an `exports` map.
      autoloadPackageJson: true,
      ...(values.target === undefined ? {} : { target: values.target as Bun.Build.CompileTarget }),
    },
  })
  process.stdout.write(`${outfile}: ${(statSync(outfile).size / 1e6).toFixed(1)} MB\n`)
}
