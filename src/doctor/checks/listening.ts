import { type Finding, fail, ok } from '#doctor/finding.ts'
import type { CheckGroup, World } from '#doctor/world.ts'
import { asRecord } from '#lib/json.ts'
import { cannotListen } from '#start-error.ts'

const check = 'address'

/** Whether a server of ours answers where one is to listen, or could. */
export const listening: CheckGroup = {
  name: check,
  limitMs: () => 5_000,
  async check(world, signal) {
    const { host, port } = world.config
    if (port === 0) return [ok(check, 'any free port')]
    const running = await askRunning(world, signal)
    return [running ?? tryToListen(host, port)]
  },
}

/** Null where nobody answers. */
async function askRunning({ config, fetch: ask }: World, signal: AbortSignal) {
  const place = `${config.host}:${config.port}`
  try {
    const answer = await ask(`http://${reachable(config.host)}:${config.port}/readyz`, { signal })
    const { status } = asRecord(await answer.json())
    if (answer.status === 200 && status === 'ok') return ok(check, `a server answers at ${place}`)
    if (status === 'draining') return ok(check, `a server is stopping at ${place}`)
    return taken(place)
  } catch (error) {
    const isSyntax = error instanceof SyntaxError
    return isSyntax ? taken(place) : null
  }
}

/** The address of everything can be listened on, and asked by that of this machine. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function taken(place: string): Finding {
  return fail(check, `another program answers at ${place}`, 'End it, or set another port (PORT).')
}

function tryToListen(host: string, port: number): Finding {
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return ok(check, `${host}:${port} is free`)
  } catch (error) {
    const advice = 'Set another address (HOST) or port (PORT), or end what uses it.'
    return fail(check, cannotListen({ host, port }, error).message, advice)
  }
}
