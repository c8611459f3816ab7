import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { createTestPlace } from './database.ts'
import { signWithSecret } from './identity-provider.ts'
import { configFile, type GatewayProcess, jwtSecret, startGatewayProcess } from './process.ts'
import { type ReplayUpstream, startReplayUpstream } from './replay-upstream.ts'
import { chatAnswer } from './scripted-answers.ts'

/** Caches and periodic checks outlast the tests: a change arrives by its notification or not at all. */
const settings = `
[api_keys]
cache_ms = 3600000
[websocket]
recheck_ms = 3600000
[speech]
models = ["open-speech", "restricted-speech"]
[retry]
retries_max = 0
`

/** Models of one upstream: open ones, and those for the group `staff`. */
function modelsAt(url: string): string {
  const model = (name: string, mode: string) =>
    `[[model]]\nname = "${name}"\nmode = "${mode}"\nupstreams = ["one"]\n`
  const both = (suffix: string, mode: string) =>
    `${model(`open${suffix}`, mode)}${model(`restricted${suffix}`, mode)}groups = ["staff"]\n`
  return `
[[upstream]]
name = "one"
url = "${url}"
models = ["listed-open", "listed-secret"]
access = [{ models = "*-secret", groups = ["staff"] }]
${both('', 'generate')}${both('-embed', 'embed')}${both('-rerank', 'rerank')}${both('-voice', 'speak')}
[[model]]
name = "restricted-speech"
mode = "transcribe"
upstreams = ["one"]
groups = ["staff"]
[[engine]]
name = "demo"
kind = "demo"
`
}

export type Replica = GatewayProcess & {
  /** A request with a bearer credential; the body is empty for a stream that was not read. */
  send(bearer: string, operation: string, json?: unknown): Promise<Sent>
}

type Sent = { readonly status: number; readonly body: JsonObject; readonly text: string }

/** Two gateway processes on one database; the same one twice where the database is embedded. */
export async function startReplicas(): Promise<{
  here: Replica
  there: Replica
  stop(): Promise<void>
}> {
  const upstream = await startReplayUpstream(answerOf)
  const place = await createTestPlace()
  const { dataFolder, databaseUrl } = place
  const config = configFile(settings + modelsAt(upstream.baseUrl))
  const start = async () =>
    withSend(
      await startGatewayProcess({
        dataFolder,
        environment: {
          SLUICE_CONFIG: config,
          ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
        },
      }),
    )
  const here = await start()
  const there = databaseUrl === undefined ? here : await start()
  const stop = async () => {
    await upstream.stop()
    await place.remove()
  }
  return { here, there, stop }
}

function answerOf({ path, body }: ReplayUpstream['requests'][number]) {
  const json = { 'content-type': 'application/json' }
  if (path.endsWith('/embeddings')) {
    const { input } = asRecord(parseJson(body))
    const data = [input].flat().map((_, index) => ({ index, embedding: [1, 0, 0] }))
    return { headers: json, body: JSON.stringify({ data }) }
  }
  if (path.endsWith('/rerank')) {
    return { headers: json, body: '{"results":[{"index":0,"relevance_score":1}]}' }
  }
  if (path.endsWith('/speech')) return { headers: { 'content-type': 'audio/mpeg' }, body: 'ID3' }
  return { body: chatAnswer(body) }
}

export function withSend(gateway: GatewayProcess): Replica {
  return {
    ...gateway,
    async send(bearer, operation, json) {
      const [method = '', path = ''] = operation.split(' ')
      const isForm = json instanceof FormData
      const response = await fetch(gateway.url() + path, {
        method,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(isForm || json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(json === undefined ? {} : { body: isForm ? json : JSON.stringify(json) }),
      })
      const text = method === 'HEAD' ? '' : await response.text()
      return { status: response.status, body: asRecord(parseJson(text)), text }
    },
  }
}

/** A token that was issued `ageS` seconds ago. */
export function tokenOf(subject: string, groups: readonly string[], ageS = 0): string {
  const iat = Math.floor(Date.now() / 1000) - ageS
  return signWithSecret(jwtSecret, { claims: { sub: subject, groups, iat, exp: iat + 7_200 } })
}

/** Creates an API key. */
export async function makeKey(
  gateway: Replica,
  bearer: string,
  fields: object = {},
): Promise<{ id: string; key: string }> {
  const made = await gateway.send(bearer, 'POST /v1/api-keys', { name: 'k', ...fields })
  if (made.status !== 200) throw new Error(made.text)
  return { id: String(made.body['id']), key: String(made.body['key']) }
}
