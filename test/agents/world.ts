import { agentEndpoints } from '#agents/endpoints.ts'
import { agentRecord } from '#agents/record.ts'
import { type Database, openDatabase } from '#db/client.ts'
import { openTestDatabase } from '#test/support/database.ts'
import { answerSchema, bodySchema, checkDescribed } from '#test/support/described-shapes.ts'
import { operationsOf } from '#test/support/endpoints.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Two gateways on one database, and users of several groups. */
export type AgentWorld = {
  readonly here: Gateway
  readonly there: Gateway
  readonly database: Pick<Database, 'drizzle'>
  stop(): Promise<void>
}

export type Caller = { readonly subject: string; readonly groups: readonly string[] }

export const ann: Caller = { subject: 'ann', groups: ['users'] }
export const bob: Caller = { subject: 'bob', groups: ['users', 'staff'] }
export const cy: Caller = { subject: 'cy', groups: ['users'] }
export const admin: Caller = { subject: 'dora', groups: ['admins'] }

export async function startAgentWorld(options: GatewayOptions = {}): Promise<AgentWorld> {
  const database = await openTestDatabase()
  const { databaseUrl, dataFolder } = database.place
  // The embedded database has only one connection.
  const again =
    databaseUrl === undefined
      ? null
      : await openDatabase({ databaseUrl, dataFolder, connectionsMax: 4, log: quietLog })
  const here = await startGateway({ ...options, database })
  const there = await startGateway({ ...options, database: again ?? database })
  return {
    here,
    there,
    database,
    async stop() {
      await here.stop()
      await there.stop()
      await again?.close()
      await database.close()
    },
  }
}

export type ApiResponse = { status: number; text: string; body: Record<string, unknown> }

/** Sends a request; with `json` it is a POST by default. */
export async function send(
  gateway: Gateway,
  caller: Caller,
  path: string,
  { json, method }: { json?: unknown; method?: string } = {},
): Promise<ApiResponse> {
  const response = await gateway.request(path, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${await gateway.token(caller.groups, caller.subject)}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: typeof json === 'string' ? json : JSON.stringify(json) }),
  })
  const text = await response.text()
  const body = Object(JSON.parse(text))
  if (response.status === 200) checkAsDescribed(body, json)
  return { status: response.status, text, body }
}

const operations = operationsOf(agentEndpoints)

/** Checks the response, and the accepted body, against their documentation. */
function checkAsDescribed(body: Record<string, unknown>, sent: unknown): void {
  const isAgent = (value: unknown) => Object(value).object === 'agent'
  const agents = [body, ...[body['data'] ?? []].flat()].filter(isAgent)
  for (const agent of agents) checkDescribed(agentRecord, agent)
  if (body['object'] === 'agent.deleted') {
    checkDescribed(answerSchema(operations.at('DELETE /v1/agents/:id')), body)
  }
  if (!isAgent(body) || sent === undefined) return
  const isNew = body['created_at'] === body['updated_at']
  const operation = operations.at(isNew ? 'POST /v1/agents' : 'PATCH /v1/agents/:id')
  checkDescribed(bodySchema(operation), typeof sent === 'string' ? JSON.parse(sent) : sent)
}

/** Creates an agent and returns its id. */
export async function makeAgent(
  gateway: Gateway,
  owner: Caller,
  fields: Record<string, unknown> = {},
): Promise<string> {
  const json = { name: 'An agent', model: 'demo-fast', ...fields }
  const { status, text, body } = await send(gateway, owner, '/v1/agents', { json })
  if (status !== 200) throw new Error(text)
  return String(body['id'])
}

export async function makeGroup(gateway: Gateway, name: string): Promise<void> {
  const { status, text } = await send(gateway, admin, '/v1/groups', { json: { name } })
  if (status !== 200) throw new Error(text)
}

/** Creates a collection and returns its id. */
export async function makeCollection(
  gateway: Gateway,
  owner: Caller,
  name: string,
): Promise<string> {
  const { status, text, body } = await send(gateway, owner, '/v1/collections', { json: { name } })
  if (status !== 201) throw new Error(text)
  return String(body['id'])
}

export function codeOf({ body }: ApiResponse): string {
  return String(Object(body['error']).code)
}
