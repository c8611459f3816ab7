import { SignJWT } from 'jose'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { jwtSecret } from '#test/support/process.ts'
import { seededRandom } from '#test/support/seeded-random.ts'
import { ViolationError } from './record.ts'
import type { Prompt } from './site/model-output.ts'

/** One tenant: a user with a token, a random sequence of its own, and a canary. */
export type Client = {
  readonly name: string
  readonly index: number
  readonly bearer: string
  readonly random: () => number
  /** The addresses of the replicas; each request picks one. */
  readonly origins: readonly string[]
  /** In all of its texts; must never be in a reply to another tenant. */
  readonly canary: string
  /** Ids and error codes of the running operation. */
  facts: string[]
  /** Models are asked for nothing that fails. */
  isCalm: boolean
  below(count: number): number
  /** The next prompt to the model, with a number of its own. */
  prompt(manner?: Prompt['manner'], words?: number): Prompt
  /** A reply with any status; throws `Broken` and `ViolationError`. */
  send(path: string, options?: SendOptions): Promise<Reply>
  /** The body of a reply with status 2xx; throws `Refused` on others. */
  json(path: string, options?: SendOptions): Promise<JsonObject>
}

type SendOptions = {
  readonly method?: string
  readonly json?: unknown
  readonly body?: Uint8Array<ArrayBuffer> | FormData
  readonly headers?: Record<string, string>
  readonly bearer?: string
  /** Disconnects after these bytes of the body were received. */
  readonly readBytesMax?: number
}

export type Reply = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
}

/** An error response. */
export class Refused extends Error {
  readonly status: number
  readonly code: string

  constructor(path: string, { status, text }: Pick<Reply, 'status' | 'text'>) {
    const code = errorCodeOf(text)
    super(`${path}: ${status} ${code}`)
    this.status = status
    this.code = code
  }
}

/** The connection broke, or none could be opened. */
export class Broken extends Error {
  readonly isConnectionRefused: boolean

  constructor(message: string, isConnectionRefused = false) {
    super(message)
    this.isConnectionRefused = isConnectionRefused
  }
}

/** Longer than any fault and any deadline: what takes longer hangs. */
export const operationMsMax = 90_000
/** While no replica accepts connections. */
const refusedPauseMs = 500
const availableTriesMax = 60
const canaryPattern = /canary~([\d~]+)~/g

/** Names the tenants that may see it. */
export function canaryFor(seed: number, ...tenants: readonly number[]): string {
  return `canary~${tenants.join('~')}~${Bun.hash(`${seed} ${tenants}`).toString(36)}`
}

export async function createClient(options: {
  index: number
  seed: number
  groups: readonly string[]
  origins: readonly string[]
}): Promise<Client> {
  const { index, seed, groups, origins } = options
  const name = `tenant-${index}`
  const random = seededRandom(seed * 1_000 + index)
  const below = (count: number) => Math.floor(random() * count)
  let calls = 0
  const client: Client = {
    name,
    index,
    bearer: await tokenOf(name, groups),
    random,
    origins,
    canary: canaryFor(seed, index),
    facts: [],
    isCalm: false,
    below,
    prompt: (manner = 'well', words = 3 + below(40)) => ({
      call: index * 1_000_000 + ++calls,
      tenant: index,
      words,
      manner,
      canary: client.canary,
    }),
    send: (path, given) => send(client, path, given),
    async json(path, given) {
      const reply = await client.send(path, given)
      if (reply.status < 200 || reply.status > 299) throw new Refused(path, reply)
      return asRecord(parseJson(reply.text))
    },
  }
  return client
}

/** For the set-up, in which a database of a busy machine may answer late. */
export async function jsonOnceAvailable(
  client: Client,
  ...given: Parameters<Client['json']>
): Promise<JsonObject> {
  for (let tries = 1; ; tries++) {
    try {
      return await client.json(...given)
    } catch (error) {
      const isUnavailable = error instanceof Refused && error.status === 503
      if (!isUnavailable || tries >= availableTriesMax) throw error
      await Bun.sleep(refusedPauseMs)
    }
  }
}

function tokenOf(subject: string, groups: readonly string[]): Promise<string> {
  return new SignJWT({ groups: [...groups] })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime('24h')
    .sign(new TextEncoder().encode(jwtSecret))
}

/** Like a load balancer: a replica that refuses the connection did nothing, so another one is asked. */
async function send(client: Client, path: string, options: SendOptions = {}): Promise<Reply> {
  const { origins } = client
  const first = client.below(origins.length)
  for (let tries = 0; ; tries++) {
    try {
      const origin = origins[(first + tries) % origins.length] ?? ''
      return await sendTo(client, origin, path, options)
    } catch (error) {
      const isRefused = error instanceof Broken && error.isConnectionRefused
      if (!isRefused || tries >= origins.length) throw error
      if (tries === origins.length - 1) await Bun.sleep(refusedPauseMs)
    }
  }
}

async function sendTo(
  client: Client,
  origin: string,
  path: string,
  options: SendOptions,
): Promise<Reply> {
  const { json, body, headers = {}, bearer = client.bearer, readBytesMax } = options
  const hasBody = json !== undefined || body !== undefined
  const leaving = new AbortController()
  const deadline = setTimeout(() => leaving.abort(), operationMsMax)
  const pieces: Buffer[] = []
  let bytesRead = 0
  let hasLeft = false
  let response: Response | null = null
  try {
    response = await fetch(origin + path, {
      method: options.method ?? (hasBody ? 'POST' : 'GET'),
      headers: {
        ...(bearer === '' ? {} : { authorization: `Bearer ${bearer}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: json === undefined ? (body ?? null) : JSON.stringify(json),
      // Each request meets another worker.
      keepalive: false,
      signal: leaving.signal,
    })
    for await (const piece of response.body ?? []) {
      pieces.push(Buffer.from(piece))
      bytesRead += piece.length
      if (readBytesMax !== undefined && bytesRead >= readBytesMax) {
        hasLeft = true
        leaving.abort()
        break
      }
    }
  } catch (error) {
    if (!hasLeft) throw brokenOf(path, error, leaving.signal)
  } finally {
    clearTimeout(deadline)
  }
  if (response === null) throw new Broken(`${path}: no response`)
  const bytes = Buffer.concat(pieces)
  const text = bytes.toString()
  requireOwnCanaries(client, path, text)
  const requestId = response.headers.get('x-request-id')
  client.facts.push(`${response.status}`, ...(requestId === null ? [] : [requestId]))
  return { status: response.status, headers: response.headers, bytes, text }
}

function brokenOf(path: string, error: unknown, signal: AbortSignal): Error {
  if (signal.aborted) {
    return new ViolationError('every operation ends', `${path} took ${operationMsMax} ms`)
  }
  const { code, message } = Object(error)
  return new Broken(`${path}: ${message}`, code === 'ECONNREFUSED' || code === 'ConnectionRefused')
}

/** Throws if the text contains a canary that this tenant may not see. */
export function requireOwnCanaries({ index }: Client, where: string, text: string): void {
  for (const [canary, tenants = ''] of text.matchAll(canaryPattern)) {
    if (tenants.split('~').includes(String(index))) continue
    throw new ViolationError('no text of another tenant', `${where} returned ${canary}`)
  }
}

/** The code, or the type, of an error body of any surface. */
function errorCodeOf(text: string): string {
  const error = asRecord(asRecord(parseJson(text))['error'])
  return String(error['code'] ?? error['type'] ?? text.slice(0, 80))
}
