import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { serverUrl } from './database.ts'
import {
  childrenOf,
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  temporaryFolder,
} from './process.ts'
import { openConnections, type ServedConnection } from './served-connection.ts'

/** More than one needs PostgreSQL. */
export const workersCount = serverUrl === undefined ? 1 : 2

export type ReloadingGateway = {
  readonly gateway: GatewayProcess
  readonly path: string
  write(text: string): void
  /** `POST /v1/config/reload` as an administrator; the status with the answer. */
  reload(): Promise<{ status: number; answer: JsonObject; message: string }>
  /** Writes, reloads, and expects it to be accepted by every worker. */
  change(text: string): Promise<JsonObject>
  /** A request as a member of a group. */
  as(group: string, path: string, init?: RequestInit): Promise<Response>
  /** A connection to each worker. */
  connections(): Promise<readonly ServedConnection[]>
}

/** A gateway with a configuration file that tests change. */
export async function startReloading(
  text: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<ReloadingGateway> {
  const path = environment['SLUICE_CONFIG'] ?? join(temporaryFolder(), 'sluice.toml')
  if (text !== '') writeFileSync(path, text)
  const gateway = await startGatewayProcess({
    environment: { SLUICE_CONFIG: path, SLUICE_WORKERS: String(workersCount), ...environment },
  })
  await gateway.logged('listening', workersCount)
  const as = async (group: string, place: string, init: RequestInit = {}) =>
    gateway.request(place, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${await signToken([group])}` },
    })
  const reload = async () => {
    const response = await as('admins', '/v1/config/reload', { method: 'POST' })
    const answer = asRecord(await response.json())
    return {
      status: response.status,
      answer,
      message: String(asRecord(answer['error'])['message']),
    }
  }
  const write = (content: string) => writeFileSync(path, content)
  return {
    gateway,
    path,
    write,
    reload,
    async change(content) {
      write(content)
      const { status, answer } = await reload()
      const workers = answer['workers']
      const states = Array.isArray(workers) ? workers.map((each) => asRecord(each)['state']) : []
      if (status !== 200 || states.join() !== Array(workersCount).fill('reloaded').join()) {
        throw new Error(`not reloaded: ${JSON.stringify(answer)}`)
      }
      return answer
    },
    as,
    connections: async () => {
      const [first = 0, second = first] = childrenOf(gateway.pid)
      const connections = await openConnections(gateway.port(), [first, second])
      return connections.slice(0, workersCount)
    },
  }
}

/** The keys of an answer that have changed. */
export function changedKeys({ changed }: JsonObject): unknown[] {
  return Array.isArray(changed) ? changed.map((each) => asRecord(each)['key']) : []
}
