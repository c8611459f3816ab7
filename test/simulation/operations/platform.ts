import { asRecord } from '#lib/json.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { Broken, operationMsMax, Refused, requireOwnCanaries } from '../client.ts'
import { ViolationError } from '../record.ts'
import { outputOf, promptText } from '../site/model-output.ts'
import { writeRegister } from '../world.ts'
import { textOf } from './model-calls.ts'
import type { OperationKind, Scene } from './operation.ts'
import { openAnywhere, withDeadline } from './sockets.ts'

/** Keys, agents, speech and reading, by every tenant. */
export const platform: readonly OperationKind[] = [
  { kind: 'key', weight: 3, play: createKey },
  { kind: 'use of a key', weight: 3, play: useKey },
  { kind: 'revoked key', weight: 2, play: revokeKey },
  { kind: 'agent', weight: 3, play: createAgent },
  { kind: 'deleted agent', weight: 1, play: deleteAgent },
  { kind: 'speech session', weight: 3, play: speak },
  { kind: 'usage', weight: 1, play: readUsage },
]

/** Of administrators. */
export const administration: readonly OperationKind[] = [
  { kind: 'settings', weight: 6, play: changeSettings },
  { kind: 'translation', weight: 6, play: translate },
]

/** How long a revoked key may work: a second, or this if notifications were lost. */
const revocationMsMax = 30_000
/** Going away, and try again later. */
const retryable = new Set([1001, 1013])
const sampleRateHz = 16_000

async function createKey({ client, world }: Scene): Promise<void> {
  const { id, key } = await client.json('/v1/api-keys', { json: { name: 'simulated' } })
  client.facts.push(String(id))
  world.keys.set(String(id), {
    tenant: client.index,
    secret: String(key),
    state: 'live',
    revokedMs: Number.POSITIVE_INFINITY,
  })
}

/** A live key works on every replica at once, a revoked one on none soon. */
async function useKey({ client, world }: Scene): Promise<void> {
  const own = [...world.keys].filter(([, { tenant }]) => tenant === client.index)
  const [id, known] = own[client.below(own.length)] ?? []
  if (id === undefined || known === undefined) return
  client.facts.push(id)
  const wasRevokedMs = performance.now() - known.revokedMs
  const { state } = known
  const reply = await client.send('/v1/models', { bearer: known.secret })
  if (reply.status === 200 && wasRevokedMs > revocationMsMax) {
    throw new ViolationError(
      'a revoked key is refused',
      `${id}, ${wasRevokedMs} ms after it was revoked`,
    )
  }
  if (reply.status === 401 && state === 'live') {
    throw new ViolationError('a live key is accepted', `${id}: ${reply.text.slice(0, 200)}`)
  }
  if (reply.status !== 200 && reply.status !== 401) throw new Refused('/v1/models', reply)
}

async function revokeKey({ client, world }: Scene): Promise<void> {
  const live = [...world.keys].filter(
    ([, { tenant, state }]) => tenant === client.index && state === 'live',
  )
  const [id, known] = live[client.below(live.length)] ?? []
  if (id === undefined || known === undefined) return
  client.facts.push(id)
  known.state = 'unknown'
  await client.json(`/v1/api-keys/${id}`, { method: 'DELETE' })
  known.state = 'revoked'
  known.revokedMs = performance.now()
}

async function createAgent({ client, world }: Scene): Promise<void> {
  const name = `agent-${client.below(1_000_000_000)}`
  const instructions = `Instructions with ${client.canary}.`
  const { id } = await client.json('/v1/agents', { json: { name, model: 'chat', instructions } })
  client.facts.push(String(id))
  world.agents.set(String(id), { tenant: client.index, name, state: 'present' })
  const prompt = client.prompt()
  const response = await client.json('/v1/responses', {
    json: { model: `vendor-agent-${id}`, input: promptText(prompt), store: false },
  })
  if (response['status'] === 'completed' && textOf(response) !== outputOf(prompt)) {
    throw new ViolationError('output is that of the model', `${id}: ${textOf(response)}`)
  }
}

async function deleteAgent({ client, world }: Scene): Promise<void> {
  const own = [...world.agents].filter(
    ([, { tenant, state }]) => tenant === client.index && state === 'present',
  )
  const [id, known] = own[client.below(own.length)] ?? []
  if (id === undefined || known === undefined) return
  known.state = 'unknown'
  await client.json(`/v1/agents/${id}`, { method: 'DELETE' })
  known.state = 'deleted'
}

/** A session ends with one `session_end` or one `error`, or its connection breaks. */
async function speak({ client }: Scene): Promise<void> {
  const session = (async () => {
    const open = (port: number) => openSpeech(port, { token: client.bearer })
    const speech = await openAnywhere(client, open)
    try {
      await speech.start()
      for (let pieces = 2 + client.below(10); pieces > 0; pieces--) {
        speech.sendAudio(new Uint8Array(sampleRateHz / 5))
        await Bun.sleep(20)
      }
      await speech.end()
    } catch (error) {
      if (!speech.isClosed() && speech.closeCode() === null) throw error
    } finally {
      speech.socket.destroy()
    }
    return speech
  })()
  const speech = await withDeadline('a speech session', operationMsMax, session)
  requireOwnCanaries(client, 'a speech session', speech.texts.join('\n'))
  const ends = speech.of('session_end').length + speech.of('error').length
  if (ends > 1) throw new ViolationError('a session ends once', speech.texts.slice(-3).join('\n'))
  const [failure] = speech.of('error')
  if (failure !== undefined) {
    const { close_code: closeCode, error } = failure
    const text = JSON.stringify({ error })
    throw new Refused('/v1/stt', { status: retryable.has(closeCode) ? 503 : closeCode, text })
  }
  if (ends === 0) throw new Broken('the speech session has no end')
}

async function readUsage({ client }: Scene): Promise<void> {
  await client.json('/v1/usage?group_by=day,model')
}

/** Concurrent changes are refused with 412. */
async function changeSettings({ client, world }: Scene): Promise<void> {
  const known = await client.send('/v1/config')
  if (known.status !== 200) throw new Refused('/v1/config', known)
  const value = 1 + client.below(50)
  await writeRegister(world, { name: 'retrieval_k', tenant: client.index, value }, async () => {
    const changed = await client.json('/v1/config', {
      method: 'PATCH',
      headers: { 'if-match': known.headers.get('etag') ?? '' },
      json: { retrieval_k: value },
    })
    if (changed['retrieval_k'] !== value) {
      throw new ViolationError('a changed setting has its value', JSON.stringify(changed))
    }
  })
}

async function translate({ client, world }: Scene): Promise<void> {
  const value = `words ${client.below(1_000_000_000)}`
  const key = `tenant${client.index}`
  await writeRegister(
    world,
    { name: `translation ${key}`, tenant: client.index, value },
    async () => {
      const path = '/v1/translations/sk?force=true'
      await client.json(path, { method: 'PATCH', json: { simulation: { [key]: value } } })
    },
  )
}

/** The value of a register, as the gateway has it now. */
export async function readRegister(client: Scene['client'], name: string): Promise<unknown> {
  if (name === 'retrieval_k') return (await client.json('/v1/config'))['retrieval_k']
  const { sk } = await client.json('/v1/translations')
  return asRecord(asRecord(sk)['simulation'])[name.slice('translation '.length)]
}
