import { hostname } from 'node:os'
import { ArgumentError, readOptions } from '#config/arguments.ts'
import { userConfigFolder } from '#config/load.ts'
import { messageOf } from '#lib/error-message.ts'
import { asRecord } from '#lib/json.ts'
import { commandLine } from '#lib/own-program.ts'
import { StartError } from '#start-error.ts'
import { createStoredKeys } from './stored-keys.ts'

const defaultUrl = 'http://127.0.0.1:8080'
const requestTimeoutMs = 30_000
const grantType = 'urn:ietf:params:oauth:grant-type:device_code'
/** RFC 8628, 3.5: added to the interval after `slow_down`. */
const slowDownS = 5

const loginUsage = `
Usage: ${commandLine('login')} [--url ${defaultUrl}] [--print]

Logs this machine in at a gateway: you confirm a code in a browser, and an API key of yours is stored
in ~/.config/sluice/credentials.json, which only you can read.

--url    the address of the gateway
--print  prints the stored key and does not log in: export SLUICE_API_KEY=$(${commandLine('login')} --print)`

const logoutUsage = `
Usage: ${commandLine('logout')} [--url ${defaultUrl}]

Revokes the API key that ${commandLine('login')} stored for this gateway, and forgets it.`

const url = { type: 'string', default: defaultUrl } as const

/** The command `login`. */
export async function logIn(args: readonly string[], request: typeof fetch): Promise<number> {
  const options = { url, print: { type: 'boolean', default: false } } as const
  const values = readOptions(args, { usage: loginUsage, options })
  if (values === null) return 0
  const gateway = connect(readOrigin(values.url), request)
  const { origin } = gateway
  const keys = createStoredKeys(userConfigFolder())
  const former = await keys.find(origin)
  if (values.print) {
    if (former === null) throw new StartError(`There is no key for ${origin}; log in first.`)
    process.stdout.write(`${former.key}\n`)
    return 0
  }
  const started = await begin(gateway)
  process.stderr.write(`Open this page and compare the code ${started['user_code']}:

  ${started['verification_uri_complete']}

`)
  const key = await waitForKey(gateway, started)
  await keys.put(origin, key)
  // The key that it replaces would stay valid unseen.
  if (former !== null) await revoke(gateway, former).catch(() => {})
  process.stderr.write(`Logged in at ${origin}. The key is in ${keys.path}.\n`)
  return 0
}

/** The command `logout`. */
export async function logOut(args: readonly string[], request: typeof fetch): Promise<number> {
  const values = readOptions(args, { usage: logoutUsage, options: { url } })
  if (values === null) return 0
  const gateway = connect(readOrigin(values.url), request)
  const { origin } = gateway
  const keys = createStoredKeys(userConfigFolder())
  const key = await keys.find(origin)
  if (key === null) throw new StartError(`There is no key for ${origin}.`)
  await revoke(gateway, key)
  await keys.remove(origin)
  process.stderr.write(`Logged out of ${origin}. The key is revoked.\n`)
  return 0
}

function readOrigin(text: string): string {
  const isUrl = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  if (!isUrl) throw new ArgumentError(`--url takes an http or https address, not "${text}".`)
  return new URL(text).origin
}

type GatewayClient = ReturnType<typeof connect>

function connect(origin: string, request: typeof fetch) {
  return {
    origin,
    async send(path: string, init: RequestInit): Promise<Response> {
      try {
        const signal = AbortSignal.timeout(requestTimeoutMs)
        return await request(origin + path, { ...init, redirect: 'error', signal })
      } catch (error) {
        const reason = messageOf(error)
        throw new StartError(`${origin} cannot be reached: ${reason}`)
      }
    },
  }
}

async function begin({ send }: GatewayClient): Promise<Record<string, unknown>> {
  const response = await send(`/login/device`, {
    method: 'POST',
    body: new URLSearchParams({ device_name: hostname() }),
  })
  const body = await readBody(response)
  if (response.ok) return body
  const { message = `status ${response.status}` } = asRecord(body['error'])
  throw new StartError(`The login cannot begin: ${message}`)
}

/** Polls until the user has decided; throws a `StartError` if there will be no key. */
async function waitForKey({ send }: GatewayClient, started: Record<string, unknown>) {
  const body = { grant_type: grantType, device_code: String(started['device_code']) }
  const endsAt = performance.now() + Number(started['expires_in']) * 1000
  let intervalS = Number(started['interval'])
  while (performance.now() < endsAt) {
    await Bun.sleep(intervalS * 1000)
    const response = await send(`/login/device/token`, {
      method: 'POST',
      body: new URLSearchParams(body),
    }).catch(() => null)
    // A lost connection is no decision.
    if (response === null || response.status >= 500) continue
    const answer = await readBody(response)
    const { access_token: key, key_id: keyId, error } = answer
    if (typeof key === 'string') return { key, keyId: String(keyId) }
    if (error === 'slow_down') intervalS += slowDownS
    else if (error !== 'authorization_pending') {
      const reason = answer['error_description'] ?? asRecord(error)['message']
      throw new StartError(`Not logged in: ${reason}`)
    }
  }
  throw new StartError('Not logged in: nobody confirmed the code in time.')
}

/** A key that the gateway does not know any more counts as revoked. */
async function revoke(
  { origin, send }: GatewayClient,
  { key, keyId }: { key: string; keyId: string },
) {
  const response = await send(`/v1/api-keys/${keyId}`, {
    method: 'DELETE',
    headers: { 'x-api-key': key },
  })
  if (response.ok || response.status === 401 || response.status === 404) return
  throw new StartError(`The key was not revoked: ${origin} answered ${response.status}.`)
}

async function readBody(response: Response): Promise<Record<string, unknown>> {
  return asRecord(await response.json().catch(() => ({})))
}
