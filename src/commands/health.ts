import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { messageOf } from '#lib/error-message.ts'
import { commandLine } from '#lib/own-program.ts'
import { type ListenAddress, localUrl, toLocalServer } from '#lib/reachable-host.ts'
import { StartError } from '#start-error.ts'

const usage = `
Usage: ${commandLine('health')}

Asks the gateway on this machine whether it is ready. The exit code is 1 if it is not.`

const timeoutMs = 3_000

/** The command `health`: the check of a container or a service manager, without another program. */
export async function checkHealth(args: readonly string[], request: typeof fetch): Promise<number> {
  if (readOptions(args, { usage, options: {} }) === null) return 0
  const url = `${probeUrl(loadConfigFromProcess([]))}/readyz`
  const status = await statusOf(url, request)
  if (status === 200) return 0
  throw new StartError(`Not ready: ${url} answered ${status}.`)
}

/** A listener that wants client certificates is probed on the port of the metrics. */
function probeUrl(config: ListenAddress & Pick<Config, 'metrics' | 'tls'>): string {
  if (config.tls.clientCa === undefined) return localUrl(config)
  const { port } = config.metrics
  if (port === undefined) {
    throw new StartError(
      'Not checked: with tls.client_ca, metrics.port (SLUICE_METRICS_PORT) is required.',
    )
  }
  return localUrl({ host: config.host, port, tls: {} })
}

async function statusOf(url: string, request: typeof fetch): Promise<number> {
  try {
    const { status } = await request(url, {
      signal: AbortSignal.timeout(timeoutMs),
      ...toLocalServer,
    })
    return status
  } catch (error) {
    const reason = messageOf(error)
    throw new StartError(`Not ready: ${url} cannot be reached: ${reason}`)
  }
}
