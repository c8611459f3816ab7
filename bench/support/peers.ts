import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import {
  basicEnvironment,
  logTail,
  StartError,
  startChild,
  temporaryFolder,
  waitUntil,
} from './children.ts'
import { listeningPid } from './listening-pid.ts'
import { UsageError } from './options.ts'
import type { Target } from './targets.ts'

/** Another gateway: its installation folder, or the URL at which it runs. */
export type Peer = { readonly name: string; readonly place: string }

export const peerOption = { type: 'string', multiple: true, default: [] as string[] } as const

/** Below tables with peers, whose names have a star. */
export const peerNote =
  '* A peer passes chat completions on as chat completions; it translates nothing, and its client ' +
  'reads what the upstream sent.'

const startDeadlineMs = 20_000
const portkeyProgram = 'node_modules/@portkey-ai/gateway/build/start-server.js'
/** Peers require some credential to forward. */
const bearer = 'sk-bench'

/** Values of `--peer`: `portkey=FOLDER`, `litellm=http://127.0.0.1:4000`. */
export function readPeers(values: readonly string[]): Peer[] {
  return values.map((value) => {
    const [name = '', ...rest] = value.split('=')
    const place = rest.join('=')
    const isUrl = /^http:\/\/127\.0\.0\.1:\d+$/.test(place)
    if (name !== '' && (isUrl || (name === 'portkey' && place !== ''))) return { name, place }
    throw new UsageError(
      '--peer is portkey=FOLDER with the package @portkey-ai/gateway in it, or NAME=http://127.0.0.1:PORT',
    )
  })
}

/** Peers do not translate: client and upstream both speak chat completions. */
export async function startPeers(
  peers: readonly Peer[],
  upstreamPort: number,
): Promise<readonly Target[]> {
  const targets: Target[] = []
  for (const { name, place } of peers) {
    const where = place.startsWith('http:')
      ? await runningPeer(place)
      : await startPortkey(place, upstreamPort)
    targets.push({ name, protocol: 'chat', upstream: 'chat', bearer, ...where })
  }
  return targets
}

/** CPU is measured if the process is found by its port. */
async function runningPeer(url: string): Promise<Pick<Target, 'port' | 'pid'>> {
  const isReachable = await fetch(url).then(
    () => true,
    () => false,
  )
  if (!isReachable) throw new StartError(`no response from ${url}`)
  const port = Number(new URL(url).port)
  const pid = listeningPid(port)
  if (pid === null) console.log(`who listens at ${url} is not known: its CPU time is not counted`)
  return { port, pid }
}

/** Portkey on Bun, forwarding to the mock upstream. */
async function startPortkey(
  folder: string,
  upstreamPort: number,
): Promise<Pick<Target, 'port' | 'pid' | 'headers'>> {
  const program = join(folder, portkeyProgram)
  if (!existsSync(program)) {
    throw new StartError(
      `${folder} has no @portkey-ai/gateway: \`mkdir -p ${folder} && cd ${folder} && ` +
        'bun add @portkey-ai/gateway@1.15.2`',
    )
  }
  const port = freePort()
  const logFile = join(temporaryFolder(), 'portkey.log')
  const child = startChild([process.execPath, program, `--port=${port}`, '--headless'], {
    cwd: folder,
    logFile,
    env: { ...basicEnvironment(), TRUSTED_CUSTOM_HOSTS: '127.0.0.1', NODE_ENV: 'production' },
  })
  await waitUntil({
    child,
    deadlineMs: startDeadlineMs,
    isReady: async () => (await fetch(`http://127.0.0.1:${port}/`)).ok,
    explain: () => `portkey does not respond:\n${logTail(logFile)}`,
  })
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
  }
  return { port, pid: child.pid, headers }
}
