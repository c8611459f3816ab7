/**
 * Installs the packages before a start. Quiet while it takes less than a second,
 * which is each start but the first; a failure is one sentence. Imports no package.
 */
import { readdirSync } from 'node:fs'
import { runtimeFault } from '../src/runtime.ts'

const progressMs = 1_000
const stalledAfterS = 15
/** Names of errors of Bun's client and of the system. */
const networkFailure =
  /Connection(Refused|Closed|Reset)|FailedToOpenSocket|Timeout|DNS|EAI_AGAIN|ENOTFOUND|ECONN|CERT|Unreachable/i
/** Kept of the output, to explain a failure. */
const outputCharsMax = 20_000

const remedy = 'Check the network and HTTPS_PROXY, or name another registry in NPM_CONFIG_REGISTRY.'
let progress = { count: -1, seconds: 0 }
process.exitCode = await run()

async function run(): Promise<number> {
  const fault = runtimeFault(process.versions) ?? (await install())
  if (fault === null) return 0
  process.stderr.write(`${fault}\n`)
  return 1
}

/** Why the packages cannot be installed; null if they are. */
async function install(): Promise<string | null> {
  const child = Bun.spawn(
    [process.execPath, 'install', '--frozen-lockfile', ...Bun.argv.slice(2)],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', forward).on('SIGINT', forward)
  const timer = setInterval(showProgress, progressMs)
  try {
    const output = await Promise.all([child.stdout, child.stderr].map(readTail))
    if ((await child.exited) === 0) return null
    return child.signalCode === null ? explain(output.join('\n')) : 'The installation was ended.'
  } finally {
    clearInterval(timer)
  }
}

async function readTail(pipe: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let tail = ''
  for await (const piece of pipe) {
    tail = (tail + decoder.decode(piece, { stream: true })).slice(-outputCharsMax)
  }
  return tail
}

/** A line for each change, and a hint when nothing changes. */
function showProgress(): void {
  const count = installedCount()
  const seconds = Math.round(performance.now() / 1_000)
  if (count !== progress.count) {
    progress = { count, seconds }
    process.stderr.write(`Installing packages: ${count} so far, ${seconds} s (first start only)\n`)
  } else if (seconds - progress.seconds >= stalledAfterS) {
    progress = { count, seconds }
    process.stderr.write(`No package arrived for ${stalledAfterS} s. ${remedy}\n`)
  }
}

function installedCount(): number {
  try {
    const names = readdirSync('node_modules').filter((name) => !name.startsWith('.'))
    const scopes = names.filter((name) => name.startsWith('@'))
    const scoped = scopes.flatMap((scope) => readdirSync(`node_modules/${scope}`))
    return names.length - scopes.length + scoped.length
  } catch {
    return 0
  }
}

/** Bun prints one line for each package that failed; the first one tells the reason. */
function explain(output: string): string {
  const lines = output.split('\n').map((line) => line.trim())
  const reason = lines.find((line) => /^error|failed/i.test(line)) ?? lines.at(-1)
  if (!networkFailure.test(reason ?? '')) return `The packages cannot be installed: ${reason}`
  return `The package registry cannot be reached (${reason}). ${remedy}`
}
