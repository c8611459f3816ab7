import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { childEnvironment } from './config/load.ts'
import type { LocalRuntime } from './installer/runtime.ts'
import { writeDurably } from './lib/durable-files.ts'
import { bunCommand } from './lib/own-program.ts'
import { StartError } from './start-error.ts'

export type InstallIo = {
  /** Where downloaded packages are kept until they are installed; by default the cache of the user. */
  readonly cacheFolder?: string
  readonly signal?: AbortSignal
  /** Receives what the package manager prints; by default it goes to the terminal. */
  readonly onLine?: (line: string) => void
}

/** How long the package manager may take. */
const installMsMax = 1_800_000
/** The end of its output that is kept. */
const outputCharsMax = 20_000
const stagingName = '.installing'
const registryAdvice =
  'The packages come from the package registry; NPM_CONFIG_REGISTRY or .npmrc names another one.'

/**
 * Installs a runtime into its folder, so that no other package is changed. It is complete before it
 * replaces the previous version. Throws a `StartError`, or the reason of the signal.
 */
export async function installRuntime(runtime: LocalRuntime, io: InstallIo = {}): Promise<void> {
  const { folder, packages, finish } = runtime
  if (packages.length === 0) {
    throw new StartError(
      `There is no ${runtime.package} for ${process.platform} on ${process.arch}.`,
    )
  }
  const staging = join(folder, stagingName)
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging, { recursive: true })
  try {
    // Without one, the package manager looks for a project above.
    await writeDurably(join(staging, 'package.json'), '{ "private": true }\n')
    await addPackages(staging, packages, io)
    finish?.(staging)
    io.signal?.throwIfAborted()
    const [next, current, previous] = [
      join(staging, 'node_modules'),
      join(folder, 'node_modules'),
      join(staging, 'previous'),
    ]
    await rename(current, previous).catch(() => {})
    await rename(next, current)
    await rename(join(staging, 'package.json'), join(folder, 'package.json'))
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

async function addPackages(
  folder: string,
  packages: readonly string[],
  { cacheFolder, signal, onLine }: InstallIo,
): Promise<void> {
  // Optional dependencies are other platforms; install scripts would download and compile. The summary
  // would advise to trust these scripts.
  const flags = ['--exact', '--omit', 'optional', '--ignore-scripts', '--no-summary']
  const { command, environment } = bunCommand('add', '--cwd', folder, ...flags, ...packages)
  const cache = cacheFolder === undefined ? {} : { BUN_INSTALL_CACHE_DIR: cacheFolder }
  const output = onLine === undefined ? 'inherit' : 'pipe'
  const child = Bun.spawn(command, {
    env: childEnvironment({ ...environment, ...cache }),
    stdio: ['ignore', output, output],
    timeout: installMsMax,
    killSignal: 'SIGKILL',
    ...(signal === undefined ? {} : { signal }),
  })
  const [, ...texts] = await Promise.all([child.exited, textOf(child.stdout), textOf(child.stderr)])
  signal?.throwIfAborted()
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => line.trim() !== '')
  for (const line of lines) onLine?.(line)
  if (child.exitCode === 0) return
  const reason = lines.findLast((line) => line.startsWith('error:')) ?? ''
  const how = child.exitCode === null ? 'was stopped' : `ended with code ${child.exitCode}`
  const details = reason === '' ? '' : ` ${reason.replace(/\.?$/, '.')}`
  throw new StartError(`The installation ${how}.${details} ${registryAdvice}`)
}

async function textOf(stream: ReadableStream<Uint8Array> | undefined): Promise<string> {
  if (stream === undefined) return ''
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text = (text + decoder.decode(chunk, { stream: true })).slice(-outputCharsMax)
  }
  return text
}
