import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { childEnvironment } from '#config/load.ts'

/** From source, the root of the checkout. */
const root = join(import.meta.dir, '../..')
const program = join(root, 'scripts/build-console.ts')
/** The console, and what it uses of the gateway. */
const sourceFolders = ['console/src', 'src/lib', 'src/speech/decoders']
const cache = join(root, 'node_modules/.cache/sluice-console')
/** A build takes a second or two. */
const buildMs = 60_000
const errorCharsMax = 2_000

/**
 * The folder with the built console of this checkout. Its name is a hash of the sources, so it is built
 * once for each version of them, whatever process asks first. `fallback` is for a checkout that this
 * process must not write to.
 */
export async function ensureBuilt(fallback: string): Promise<string> {
  const name = hashSources()
  const known = [cache, fallback].map((folder) => join(folder, name))
  const built = known.find((folder) => existsSync(join(folder, 'manifest.json')))
  if (built !== undefined) return built
  const parent = isWritable(cache) ? cache : fallback
  const folder = join(parent, name)
  const draft = join(parent, `draft-${Bun.randomUUIDv7()}`)
  mkdirSync(parent, { recursive: true })
  try {
    await runBuild(draft)
    moveInto(draft, folder)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  for (const other of readdirSync(parent)) {
    if (other !== name && !other.startsWith('draft-')) {
      rmSync(join(parent, other), { recursive: true, force: true })
    }
  }
  return folder
}

/** In a process of its own, because a build occupies this one for a second. */
async function runBuild(folder: string): Promise<void> {
  const code = `const { buildConsole } = await import(${JSON.stringify(program)}); await buildConsole(${JSON.stringify(folder)})`
  const child = Bun.spawn([process.execPath, '--no-install', '-e', code], {
    cwd: root,
    env: childEnvironment({}),
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: buildMs,
  })
  const [output, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  if (exitCode === 0) return
  throw new Error(`the console could not be built: ${output.slice(0, errorCharsMax)}`)
}

/** Two processes may build at the same time: the first one wins. */
function moveInto(draft: string, folder: string): void {
  try {
    renameSync(draft, folder)
  } catch (error) {
    if (!existsSync(join(folder, 'manifest.json'))) throw error
  }
}

function isWritable(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true })
    const probe = join(folder, `draft-${Bun.randomUUIDv7()}`)
    mkdirSync(probe)
    rmSync(probe, { recursive: true })
    return true
  } catch {
    return false
  }
}

/** Of everything that the result depends on; the lock file has the versions of the packages. */
function hashSources(): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const files = sourceFolders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort()
  for (const file of [...files, program, join(root, 'bun.lock')]) {
    if (!existsSync(file)) continue
    hasher.update(`${file.slice(dirname(root).length)}\0`).update(readFileSync(file))
  }
  return hasher.digest('hex').slice(0, 32)
}
