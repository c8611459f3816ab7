import { type Finding, fail, ok } from '#doctor/finding.ts'
import { asRecord } from '#lib/json.ts'
import { localUrl, toLocalServer } from '#lib/reachable-host.ts'
import { cannotListen } from '#start-error.ts'
import type { CheckGroup, CheckInputs } from './check.ts'

const check = 'address'

/** Whether the server listens, or could listen, on its address. */
export const listening: CheckGroup = {
  name: check,
  limitMs: () => 5_000,
  async check(inputs, signal) {
    const { host, port } = inputs.config
    if (port === 0) return [ok(check, 'any free port')]
    const running = await findRunning(inputs, signal)
    return [running ?? tryToListen(host, port)]
  },
}

/** Null without a response. */
async function findRunning({ config, fetch: ask }: CheckInputs, signal: AbortSignal) {
  const place = `${config.host}:${config.port}`
  try {
    const answer = await ask(`${localUrl(config)}/readyz`, { signal, ...toLocalServer })
    const { status } = asRecord(await answer.json())
    if (answer.status === 200 && status === 'ok')
      return ok(check, `a server is running at ${place}`)
    if (status === 'draining') return ok(check, `a server is stopping at ${place}`)
    return taken(place)
  } catch (error) {
    const isSyntax = error instanceof SyntaxError
    return isSyntax ? taken(place) : null
  }
}

function taken(place: string): Finding {
  return fail(check, `another program uses ${place}`, 'Stop it, or set another port (PORT).')
}

function tryToListen(host: string, port: number): Finding {
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return ok(check, `${host}:${port} is free`)
  } catch (error) {
    const advice = 'Set another address (HOST) or port (PORT), or stop the program that uses it.'
    return fail(check, cannotListen({ host, port }, error).message, advice)
  }
}
